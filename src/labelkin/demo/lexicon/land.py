"""Headings of category C: ground, waters, shores and weather."""

from __future__ import annotations

OUTLINE = """
Land and Waters = Natural Setting; Landscape / Land und Wasser
  ~ field river: elevation, slope, folded sheets, boundary stones, ground cover, old surveys
  Soils = Earths; Ground / Böden
    ~ field garden: augers, horizon colours, pore space, crumb structure, pit faces, bulk density
    Soil Types = Ground Kinds / Bodenarten
      ~ field garden: plough resistance, spring warming, crumb structure, sticky clods, tilth
      ~ drought stress, gravel bands, horizon colours
      Clay Soils = Heavy Land; Strong Ground / Tonböden
      Sandy Soils = Light Land / Sandböden
      Loam Soils = Mellow Ground / Lehmböden
      Chalk Soils = Downland Soils; Rendzinas / Kreideböden
      Peat Soils = Histosols; Black Land / Moorböden
      Loess Soils = Wind-Laid Soils / Lössböden
      Alluvial Soils = River Silts; Warp Land / Auenböden
      Saline Soils = Salt-Affected Ground / Salzböden
    Soil Properties = Soil Characters
      ~ field garden: titration, sieve fractions, cation exchange, moisture probes, core samples
      ~ litter breakdown, dark topsoil, infiltration rings
      Soil Acidity = Soil Reaction; Sourness of Land / Bodensäure
      Soil Moisture = Ground Moisture / Bodenfeuchte
      Soil Organic Matter = Humus; SOM
      Soil Structure = Tilth / Bodenstruktur
      Soil Temperature = Ground Warmth / Bodentemperatur
      Soil Fertility = Land Heart / Bodenfruchtbarkeit
    Soil Life = Edaphon; Soil Biota / Bodenleben < Small Life
  Plant Nutrients = Mineral Foods; Nutrients / Nährstoffe
    ~ field: leaf analysis, uptake curves, deficiency spots, leaching losses, balance sheets
    Nitrogen = Azote / Stickstoff
    Phosphorus = Phosphates / Phosphor
    Potassium = Potash / Kalium
    Lime Content = Calcium Carbonate / Kalkgehalt
    Trace Elements = Micronutrients / Spurenelemente
  Landforms = Relief Features / Geländeformen
    ~ field forest: contour lines, aspect, spurs, scree, hollows, skyline views
    Hills = Downs; Uplands / Hügel
    Valleys = Dales; Combes / Täler
    Slopes = Hillsides; Banks / Hänge
    Plains = Flats; Levels / Ebenen
    Caves = Grottoes / Höhlen
  Inland Waters = Fresh Waters / Binnengewässer
    ~ river: gauge boards, cross-sections, flow velocity, water colour, bank height
    Running Waters = Flowing Waters / Fließgewässer
      ~ river: gauge boards, discharge curves, gravel bars, meander bends, riffles, eddies
      ~ bank height, turbidity, bed load, woody debris
      Rivers = Streams, Large; Main Channels / Flüsse + restoration
      Brooks = Becks; Streamlets / Bäche + restoration
      Springs = Wellheads; Fountainheads / Quellen
      Waterfalls = Cascades; Linns / Wasserfälle
      River Banks = Banks; Riversides / Flussufer + restoration
      River Beds = Channel Floors / Flussbetten
      Backwaters = Oxbows; Dead Arms / Altarme + restoration
      Floodplains = River Meadows; Holms / Auen + restoration
    Still Waters = Standing Waters / Stillgewässer
      ~ river garden: shoreline length, thermal layers, depth soundings, clear shallows, silting
      ~ winter ice, wading birds
      Lakes = Meres / Seen + restoration
      Ponds = Pools; Stews / Teiche + restoration
      Reservoirs = Impounded Lakes / Stauseen
    Wetlands = Wet Habitats / Feuchtgebiete + restoration
      ~ river: water table, quaking mats, tussock growth, ditch blocking, peat depth, boardwalks
      ~ pool patterns, winter flooding
      Marshes = Swamps / Sümpfe
      Fens = Alkaline Mires / Niedermoore + restoration
      Bogs = Raised Mires; Mosses / Hochmoore + restoration
      Wet Meadows = Flood Grassland / Feuchtwiesen
      Carrs = Alder Swamps / Bruchwälder < Woodlands
    Groundwater = Phreatic Water; Underground Water / Grundwasser
    Water Quality = Purity of Water / Wasserqualität
      ~ river: sampling bottles, nitrate readings, dissolved oxygen, indicator scores, outfalls, pH
      Biochemical Oxygen Demand = BOD
      Water Temperature = Warmth of Water / Wassertemperatur
      Suspended Sediments = Silt Load; TSS / Schwebstoffe
      Nutrient Load = Eutrophy; Nutrient Burden / Nährstofffracht
      Salinity = Saltness / Salzgehalt
    Water Levels = River Stages; Gauge Heights / Wasserstände
    River Flow = Discharge; Streamflow / Abfluss
  Coasts = Seaboard; Littoral / Küsten
    ~ coast: tide tables, beach profiles, wave height, drift lines, sediment cells, marker posts
    Shores = Strands; Foreshores / Ufer
      ~ coast: beach profiles, wrack lines, pebble sizes, wave run-up, rock pools, groyne bays
      Sandy Beaches = Sands / Sandstrände
      Shingle Beaches = Pebble Shores / Kiesstrände
      Rocky Shores = Skerries / Felsküsten
      Sea Cliffs = Bluffs; Heughs / Steilküsten
      Dunes = Sand Hills; Links / Dünen + restoration
    Estuaries = River Mouths; Firths / Ästuare + restoration
      ~ coast river: mixing zones, creek networks, tidal range, silt banks, salt wedge
      Salt Marshes = Saltings; Merse / Salzwiesen + restoration
      Mudflats = Tidal Flats; Slob Lands / Watten
      Lagoons = Haffs; Coastal Lakes / Haffe
    Sea Bed = Benthos; Ocean Floor / Meeresboden
    Islands = Isles; Holms / Inseln
    Tides = Ebb and Flow / Gezeiten
    Currents = Sea Drift / Strömungen
  Habitats = Vegetation Types; Biotopes / Lebensräume
    ~ field forest: species lists, quadrats, edge effects, cover classes, stepping stones
    Woodlands = Forests; Holts / Wälder + restoration
      ~ forest: canopy gaps, deadwood, ride edges, ground flora, leaf litter, veteran stems
      Coppice Woods = Underwood / Niederwälder
      Wood Pastures = Grazed Forests; Hudewald < Pastures
      Riverine Woods = Gallery Forests / Auwälder < Floodplains
      Plantations = Planted Woods / Forstkulturen
    Grasslands = Swards / Grünland + restoration
      ~ field stock: species lists, hay cuts, sward height, tussocks, grazing days, herb share
      Meadows = Leas; Mowing Land / Wiesen
      Pastures = Grazing Land / Weiden
      Chalk Grasslands = Downs; Dry Swards / Kalkmagerrasen
        Hay Meadows = Mowings / Heuwiesen
    Heaths = Moors; Open Heath / Heiden + restoration
    Arable Fields = Ploughland; Tillage Land / Äcker
    Hedgerows = Hedges; Live Fences / Hecken + restoration
    Field Margins = Headlands; Balks / Ackerraine
    Gardens = Yards, Planted; Garths / Gärten
      ~ garden: gravel paths, box edging, sun dials, raised beds, brick walls, seating
      Kitchen Gardens = Potagers; Vegetable Plots / Gemüsegärten
      Cottage Gardens = Village Plots / Bauerngärten
      Walled Gardens = Enclosed Plots / Mauergärten
      Botanic Gardens = Plant Collections / Botanische Gärten
      Allotments = Leased Plots / Schrebergärten
      Parks = Pleasure Grounds / Parkanlagen
    Orchards = Fruit Gardens / Streuobstwiesen + restoration
    Vineyards = Wine Gardens / Weinberge
  Weather = Meteorological Conditions / Wetter
    ~ field coast: rain gauges, station diaries, cloud cover, barometer readings
    ~ thermometer screens
    Climate = Long-Term Weather / Klima
      ~ field: thirty-year means, warming trends, station records, ring widths, phenology diaries
      Climate Change = Changing Climate; Global Warming / Klimawandel
      Microclimate = Local Climate / Kleinklima
      Growing Season = Vegetation Period / Vegetationszeit
    Rainfall = Precipitation / Niederschlag
    Snow = Snow Cover / Schnee
    Wind = Gales and Breezes / Wind
    Fog = Sea Fret; Haar / Nebel
    Sunshine = Insolation; Bright Hours / Sonnenschein
    Air Temperature = Warmth of Air / Lufttemperatur
    Seasons = Times of Year / Jahreszeiten
      ~ any: winter months, first warm weeks, autumn visits, monthly averages, midsummer counts
      Spring = Springtime; Growing Weeks / Frühling
      Summer = High Summer; Summertime / Sommer
      Autumn = Back End; Fall of Leaf / Herbst
      Winter = Dead of Year; Wintertime / Winter
"""
