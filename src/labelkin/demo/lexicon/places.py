"""Headings of category G: the invented country of Ellmark, its provinces, rivers and towns."""

from __future__ import annotations

OUTLINE = """
Places = Geographic Names; Localities / Orte
  ~ any: parish maps, milestone roads, survey sheets, church towers, old boundaries
  ^Ellmark = Elmerland; Old Realm / Ellmark
    ~ any: national statistics, census districts, the state archive
    ~ the eight-county atlas, border posts
  Provinces = Shires; Historic Provinces / Provinzen
    ~ any: provincial archives, county roads, border parishes, market towns, local dialects
    ^Sarnland = Country of Sarn; Sarn Province / Sarnland
      ~ any: clay vales, brick farmsteads, slow ferries, wide hedged fields, canal towns
      Upper Sarnland = High Sarn / Obersarnland
      Lower Sarnland = Low Sarn / Niedersarnland
      Sarn Vale = Vale Country
      Market Ollery = Ollery
      Stanbrook = Stanbrook Town
    ^Tarrowshire = Tarrow Country; Tarrow Hills Province / Tarroland
      ~ any: stone villages, sheep walks, deep lanes, slate roofs, cold springs, drovers' inns
      Tarrow Hills = High Tarrow
      Tarrow Moor = Great Moss of Tarrow
      Hexley = Hexley Town
      Cold Ambry = Ambry
    ^Brennick = Brennick Coast Province / Brennick
      ~ any: fishing villages, white cottages, lighthouse roads, salt winds, lobster quays
      Brennick Head = Cape Brennick
      Port Merrin = Merrin Haven
      Gull Haven = Gullhaven Harbour
      Brennick Cliffs = White Walls of Brennick
    ^Callowmere = Callow Lakes; Lake Shire / Callowmer
      ~ any: lake steamers, boathouses, birch shores, island chapels, ice fairs
      Lake Callow = Callow Water / Callower See
      Lake Ennis = Ennis Broad
      Wether Island = Sheep Isle
      Callow Bridge = Callowbrig
    ^Ostermere = Eastern Marches; Oster Fens / Ostermer
      ~ any: drained levels, pump houses, straight roads, black fields, wide skies
      Great Oster Fen = Oster Level
      Dykeham = Dyke Town
      Oster Island = Isle of Oster
    ^Hethe Islands = The Hethes; Outer Isles / Hethe-Inseln
      ~ any: mail boats, turf houses, tide races, walled fields, knitting songs
      Great Hethe = Hethe Mainland
      Little Hethe = Small Hethe
      Skellow = Isle of Skellow
      Hethe Sound = Sound of Hethe
    ^Vinlow = Vine Country; Southern Slopes / Weinland
      ~ any: sunny terraces, wine lanes, walled orchards, tiled roofs, fruit trains
      Abbot's Vinlow = Vinlow Abbey
      Quillow = Quillow Town
      Amber Slopes = Amberside
    ^Norrow = North Woods; Norrow Forest Province / Norrow
      ~ any: log tracks, charcoal glades, sawmill hamlets, long winters, forest chapels
      Great Norrow Forest = King's Forest
      Norrow Gap = Pass of Norrow
      Timberley = Timberley Mills
  Named Rivers = River Names / Flussnamen
    ~ river coast: ferry landings, riverside inns, towpaths, gauging stations, confluences
    ^Sarn River = River Sarn; Old Father Sarn / Sarn + floods fisheries
      Sarn Delta = Mouths of Sarn
      Sarn Basin = Sarn Catchment / Sarnbecken
      Upper Sarn = Sarn Headwaters
    ^Tarrow River = River Tarrow; Little Tarrow / Tarro + floods fisheries
    ^Ambry Brook = Ambry Water
    ^Merrin River = River Merrin / Merrin + floods fisheries
      Merrin Estuary = Merrin Firth / Merrinmündung
    ^Ouselet = River Ouselet + floods
    ^Vin River = River Vin / Vin + fisheries
    ^Norrow River = River Norrow + floods fisheries
    ^Quill Water = River Quill
  Named Seas and Bays = Sea Names / Meeresnamen
    ~ coast: sea marks, pilot charts, harbour lights, sand bars, herring grounds
    ^Mewsey Bay = Bay of Mewsey
    ^Grey Sound = Sound of Mews
    ^Ellmark Sea = Inner Sea / Ellmarksee
    ^Long Strand = Brennick Sands
    ^Oster Wash = The Wash of Oster
    ^Selkie Bank = Seal Bank
  Landscape Regions = Natural Regions / Naturräume
    ~ any: geology maps, broad valleys, scattered farms, soil associations, land cover maps
    ^Lowlands = Low Country / Tiefland
    ^Uplands of Ellmark = High Country / Hochland
    ^Coastal Plain = Maritime Plain / Küstenebene
    ^Lake District of Callow = Lakeland / Seenland
    ^Fenlands = Fen Country / Fenland
    ^Chalk Country = Chalk Belt / Kreideland
    ^Borderlands = Marches; Frontier Parishes / Grenzland
"""

PROPER_NOUNS = frozenset(
    "Abbey Abbot's Amber Amberside Ambry Brennick Callow Callowbrig Callowmere Callows "
    "Colorado Dykeham Elmerland Ellmark Ennis Gullhaven Hethe Hethes Hexley "
    "Himalayan King's Lakeland Merrin Mewsey Michaelmas Newcastle Norrow Ollery Oster "
    "Ostermere Ouselet Quill Quillow Sarn Sarnland Selkie Skellow Stanbrook Tarrow "
    "Tarrows Tarrowshire Timberley Vin Vinlow".split()
)
"""Words that keep their capital within a sentence."""
