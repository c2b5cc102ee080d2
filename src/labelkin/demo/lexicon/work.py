"""Headings of category E: practices, skills, buildings and tools."""

from __future__ import annotations

OUTLINE = """
Work and Tools = Practices; Rural Techniques / Arbeit und Geräte
  ~ field garden: labour hours, work diaries, daily tasks, hired hands, costs per acre
  Tillage = Cultivation of Land; Soil Working / Bodenbearbeitung
    ~ field: furrow depth, plough teams, seedbeds, fuel use, stale ridges, wheel tracks
    Ploughing = Furrow Work; Aration / Pflügen
    Harrowing = Tine Work / Eggen
    Direct Drilling = No-Till; Zero Tillage / Direktsaat
    Fallowing = Resting Land; Set-Aside / Brache
  Sowing and Planting = Crop Establishment / Saat und Pflanzung
    ~ field garden: seed rates, drill rows, emergence counts, dibbers
    ~ planting boards, spacing trials
    Sowing = Seeding / Aussaat
    Transplanting = Planting Out / Verpflanzen
    Seed Treatment = Seed Dressing / Saatgutbehandlung
    Seed Saving = Home-Grown Seed / Samengewinnung
    Nursery Raising = Plant Nurseries / Pflanzenanzucht
  Crop Systems = Cropping Systems / Anbausysteme
    ~ field: break crops, four-course plans, strip trials, land equivalent ratios, whole-farm plans
    Crop Rotation = Rotations; Course of Crops / Fruchtfolge
    Intercropping = Mixed Cropping; Maslin / Mischkultur
    Cover Crops = Catch Crops; Green Winter Cover / Zwischenfrüchte
    Organic Farming = Biological Husbandry; Natural Farming / Ökolandbau
    Agroforestry = Tree Cropping; Alley Cropping / Agroforstwirtschaft
    Hill Farming = Upland Farming / Bergbauernwirtschaft
    Market Gardening = Truck Farming / Erwerbsgemüsebau
  Manuring = Fertilisation; Soil Dressing / Düngung
    ~ field garden: spreading dates, carted loads, heap temperature, nutrient budgets, trial strips
    ~ response curves, turned heaps
    Farmyard Manure = Dung; FYM / Stallmist
    Slurry = Liquid Manure / Gülle
    Composting = Compost Making; Heap Work / Kompostierung
    Green Manuring = Ploughing-In / Gründüngung
    Liming = Chalking; Marling / Kalkung
    Mineral Fertilisers = Artificials; NPK / Mineraldünger
    Seaweed Manuring = Wrack Spreading < Seaweeds
    Mulching = Ground Covering / Mulchen
  Plant Protection = Crop Protection / Pflanzenschutz
    ~ field garden orchard: spray volumes, thresholds, beneficials, trial rows, drift, forecasts
    Integrated Pest Management = IPM; Guided Control / Integrierter Pflanzenschutz
    Biological Control = Natural Enemies, Use of; Biocontrol / Biologische Schädlingsbekämpfung
    Weed Control = Weeding / Unkrautbekämpfung
    Crop Spraying = Spray Work / Spritzung
    Bird Scaring = Scarecrows; Crow Keeping / Vogelabwehr
    Trapping = Snaring / Fallenfang
    Resistance Testing = Resistance Trials / Resistenzprüfung
  Plant Breeding = Crop Improvement; Selection of Plants / Pflanzenzüchtung
    ~ field garden orchard: crossing lists, pedigrees, seed lots, trial plots, selection index
    Hybrids = Crosses; Crossbreds / Hybriden
    Landraces = Local Varieties; Folk Varieties / Landsorten
    Variety Trials = Cultivar Tests; VT / Sortenversuche
    Gene Banks = Seed Banks; Germplasm Stores / Genbanken
  Garden Work = Horticultural Practice / Gartenarbeit
    ~ garden orchard: tidy edges, tool sheds, wheelbarrows, winter jobs, apprentices, twine
    Pruning = Cutting Back; Lopping / Baumschnitt
      ~ orchard garden: spur cuts, sharp blades, wound sealing, winter days, open crowns, new wood
    Grafting = Budding; Scion Work / Veredelung
    Propagation = Multiplication of Plants / Vermehrung
    Hedge Laying = Pleaching; Plashing / Heckenlegen
    Lawn Care = Turf Keeping / Rasenpflege
    Garden Design = Garden Layout; Landscaping / Gartengestaltung
    Frost Protection = Winter Covering / Frostschutz
    Garden Watering = Hand Watering / Gießen
  Harvesting = Reaping; Ingathering / Ernte
    ~ field orchard: picking gangs, cutting dates, carted loads, field losses, harvest suppers
    Haymaking = Hay Harvest; Hay Time / Heuernte
    Threshing = Flail Work / Dreschen
    Silage Making = Ensiling / Silagebereitung
  Crop Storage = Keeping of Produce / Lagerung
    ~ field orchard: store temperature, ventilation, weight loss, mouldy bins, loft floors
    Granaries = Corn Stores; Garners / Kornspeicher
    Root Cellars = Clamps; Earth Stores / Erdkeller
    Cold Stores = Ice Houses / Kühllager
    Drying Lofts = Drying Barns / Trockenböden
  Stock Keeping = Animal Husbandry; Stock Farming / Tierhaltung
    ~ stock: housing, stocking rates, weigh crates, daily rounds, stall bedding, herdsmen
    Grazing = Pasturing; Depasturing / Beweidung
      ~ stock field: stocking rates, paddock moves, dung pats, electric lines, turnout dates
      Rotational Grazing = Paddock Grazing / Umtriebsweide
      Mountain Grazing = Transhumance; Summer Shielings / Almwirtschaft
      Common Grazing = Stints; Grazing Rights / Allmendweide < Commons
    Animal Feeding = Foddering; Nutrition of Beasts / Tierfütterung
      ~ stock: rations, trough space, intake, hay racks, meal mixtures, mineral licks
    Animal Breeding = Stock Improvement / Tierzucht
      ~ stock: sire lines, herd books, progeny tests, show points, line breeding
    Milking = Dairy Work / Melken
    Shearing = Clipping / Schur
    Lambing = Yeaning / Ablammen
    Herding = Droving; Shepherding / Hüten
    Animal Housing = Byres; Stables / Stallungen
    Beekeeping = Apiculture / Imkerei
      ~ garden orchard: frame hives, smoke, queen rearing, swarm boxes, sugar syrup, heather trips
  Water Works = Hydraulic Engineering; Water Engineering / Wasserbau
    ~ river field: spillways, stone facing, pump hours, sluice settings, bank repair, clay cores
    Drainage = Land Draining; Dewatering / Entwässerung
      ~ field river: tile lines, outfall depth, ditch cleaning, pump hours, water table
      Ditches = Dykes; Gripes / Gräben
      Tile Drains = Pipe Drains / Dränrohre
      Wind Pumps = Drainage Mills / Windpumpen
    Irrigation = Watering of Land / Bewässerung
      ~ field orchard: furrow streams, turn lists, evaporation pans, drip lines, hose reels
      Water Meadows = Floated Meadows; Catchwork / Wässerwiesen < Wet Meadows
      Drip Irrigation = Trickle Watering / Tröpfchenbewässerung
    Weirs = Overfalls; Fish Dams / Wehre
    Sluices = Water Gates; Penstocks / Schleusen
    Dams = Barrages / Staudämme
    Fish Passes = Fish Ladders; Salmon Stairs / Fischtreppen
    Mill Races = Leats; Races / Mühlgräben
    Canals = Cuts; Navigations / Kanäle
    Wells = Dug Wells; Bores / Brunnen
    Bank Protection = Revetments; Faggot Work / Uferschutz
  Coastal Defence = Sea Defence; Shore Protection / Küstenschutz
    ~ coast: crest height, clay cores, toe scour, stone facing, repair gangs, overtopping
    Sea Walls = Sea Banks / Seedeiche
    Dykes and Levees = Dykes; Embankments / Deiche
    Groynes = Shore Jetties; Stakes / Buhnen
    Beach Nourishment = Sand Feeding / Strandaufspülung
    Managed Realignment = Setback; Bank Retreat / Deichrückverlegung
    Land Reclamation = Polders; Inning / Landgewinnung
  Fishing = Fishery Practice; Fish Catching / Fischerei
    ~ coast river: landings, mesh size, catch per day, crew shares, closed weeks, bait
    Net Fishing = Seining / Netzfischerei
    Line Fishing = Long-Lining / Leinenfischerei
    Angling = Rod Fishing; Sport Fishing / Angeln
    Fish Traps = Creels; Weels / Reusen
    Shellfish Gathering = Cockling; Shore Picking / Muschelfischerei
    Fish Farming = Aquaculture; Pisciculture / Fischzucht
    Fish Stocking = Restocking / Fischbesatz
    Fishing Boats = Cobles; Smacks / Fischerboote < Boats
  Forestry = Silviculture; Woodcraft / Forstwirtschaft
    ~ forest: marked stems, cutting cycles, stacked cordwood, haulage tracks
    ~ replanting, tree guards
    Coppicing = Copse Cutting / Niederwaldnutzung
    Tree Planting = Afforestation / Aufforstung
    Thinning of Stands = Wood Thinning / Durchforstung
    Felling = Tree Cutting; Logging / Holzfällung
    Charcoal Burning = Wood Coaling / Köhlerei
  Habitat Restoration = Rewilding; Ecological Repair / Renaturierung
    ~ river coast forest: baseline years, returning species, seed transfer, fenced plots
    ~ volunteer days, plug planting
    Nature Reserves = Protected Areas; Sanctuaries / Naturschutzgebiete
    Reintroduction = Species Return / Wiederansiedlung
    Wildlife Corridors = Green Links / Wildkorridore
    Agri-Environment Schemes = Stewardship Schemes; AES
  Farm Machinery = Farm Equipment; Implements / Landmaschinen
    ~ field: working width, repairs, hire charges, engine hours, cast parts, operators
    Ploughs = Plough Irons / Pflüge
    Seed Drills = Drills; Sowing Machines / Sämaschinen
    Tractors = Farm Engines / Traktoren
    Harvesters = Combines; Reapers / Mähdrescher
    Threshing Machines = Threshers / Dreschmaschinen
    Wagons = Wains; Carts / Wagen
    Carriers on Cableways -> Wagons
  Hand Tools = Garden Tools; Small Implements / Handgeräte
    ~ garden field: ash handles, worn blades, smithy work, whetstones, tool chests
    Scythes = Mowing Blades / Sensen
    Spades = Delving Irons / Spaten
    Pruning Knives = Billhooks / Gartenmesser
    Baskets = Trugs; Hampers / Körbe
  Buildings and Craft = Farm Buildings; Steadings / Bauten
    ~ stock village: timber frames, lime wash, floor plans, door beams, roof pitch
    Barns = Tithe Barns; Laithes / Scheunen
    Greenhouses = Glasshouses; Hothouses / Gewächshäuser < Garden Work
    Dovecotes = Columbaria; Pigeon Houses / Taubenschläge
    Watermills = Mills; Corn Mills / Wassermühlen
    Windmills = Mills; Post Mills / Windmühlen
    Farmhouses = Homesteads / Bauernhäuser
    Dry Stone Walls = Field Walls / Trockenmauern
    Boats = Small Craft / Boote
    Bridges = River Crossings / Brücken
    Harbours = Havens; Ports / Häfen
"""
