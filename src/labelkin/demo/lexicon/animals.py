"""Headings of category B: livestock, game, birds, fishes and the small life of Ellmark."""

from __future__ import annotations

OUTLINE = """
Animals = Fauna; Animal Life / Tiere
  ~ stock river: body weight, age classes, litter size, tracks, breeding pairs, daily ranging
  Animal Migration = Seasonal Movements; Passage of Animals / Tierwanderungen
    ~ river coast: ringing totals, first arrivals, radio tags, counting gates, moonless nights
  Farm Animals = Livestock; Domestic Animals / Nutztiere
    ~ stock: liveweight gain, herd books, stall bedding, ear marks, mating season, housing
    Cattle = Neat; Bos taurus / Rinder + rearing feeding ailments breedingstock
      ~ stock: milking parlours, calving ease, bulling heifers, udder shape, stall bedding
      ~ winter housing, horned heads, weaning weight, cudding, herd books
      Dairy Cows = Milch Cows; Milkers / Milchkühe + feeding
      Beef Cattle = Fatstock / Mastrinder
      Draught Oxen = Plough Oxen / Zugochsen < Draught Animals
      Calves = Young Neat / Kälber
      Tarrow Red Cattle = Tarrow Reds; TRC
      Brennick Dun Cattle = Dun Cows of Brennick
    Sheep = Ovis aries; Woolstock / Schafe + rearing feeding ailments breedingstock
      ~ stock: lambing rates, fleece weight, shearing days, heft boundaries, dog work, hurdles
      ~ ewe condition, tupping, twin births, staple length
      Ewes = Breeding Sheep / Mutterschafe
      Lambs = Young Sheep / Lämmer
      Callow Horned Sheep = Callows
      Hethe Island Sheep = Seaweed Sheep
    Goats = Capra hircus / Ziegen + feeding
      ~ stock: browsing, kidding, tethering, hoof trimming, milk yield, scrub clearance
    Pigs = Swine; Hogs / Schweine + rearing feeding ailments
      ~ stock: farrowing, sty floors, acorn feeding, litter weights, rooting, back fat
      Sows = Brood Pigs / Sauen
      Piglets = Sucklings / Ferkel
      Orchard Pigs = Apple Hogs
    Horses = Equines; Equus caballus / Pferde + feeding ailments breedingstock
      ~ stock: hoof care, collar fit, foaling, gait, bridle paths, stable routine
      Draught Horses = Heavy Horses; Plough Horses / Zugpferde < Draught Animals
      Ponies = Small Horses / Ponys
      Donkeys = Asses; Equus asinus / Esel < Draught Animals
    Draught Animals = Working Beasts; Beasts of Burden / Zugtiere
    Poultry = Domestic Fowl; Farmyard Birds / Geflügel + feeding ailments
      ~ stock: laying rates, broody hens, perches, dust baths, clutch size, feather condition
      ~ hen runs, hatching trays, grit, fox losses
      Chickens = Hens; ^Gallus / Hühner + rearing
      Ducks, Domestic = Farmyard Ducks / Hausenten
      Geese, Domestic = Farmyard Geese / Hausgänse
      Turkeys = ^Meleagris / Truthühner
      Pigeons, Domestic = Dovecote Birds / Haustauben
    Rabbits = Coneys / Kaninchen
    Working Dogs = Herding Dogs; Farm Dogs / Hütehunde
    Honeybees = Apis mellifera; Hive Bees / Honigbienen + ailments breedingstock
      ~ garden orchard: brood frames, nectar flow, swarming, wintering clusters, comb building
      ~ hive weight, queen marking, forage range, skeps
  Wild Mammals = Game and Vermin; ^Mammalia / Wildsäuger
    ~ forest field: droppings, burrows, hair traps, night sightings, tracks in mud
    Deer = ^Cervidae / Hirsche + counts
      ~ forest: browsing lines, rutting stands, antler growth, fallow glades, bark stripping
      Red Deer = Cervus elaphus; Stags / Rothirsche
      Roe Deer = ^Capreolus / Rehe
    Wild Boar = Sus scrofa; Forest Swine / Wildschweine
    Hares = ^Lepus; Field Jacks / Feldhasen + counts
    Foxes = ^Vulpes; Reynards / Füchse
    Badgers = Brocks; Meles meles / Dachse
    Hedgehogs = Urchins; ^Erinaceus / Igel
    Otters = Lutra lutra / Fischotter + counts
      ~ river: spraints, den sites, fish remains, night sightings, slides, territory lengths
    Beavers = Castor fiber / Biber + counts
      ~ river: lodges, gnawed stumps, dam building, flooded thickets, kits, bark caches
    Water Voles = ^Arvicola; Bank Rats / Schermäuse
    Bats = ^Chiroptera; Flittermice / Fledermäuse
      ~ forest garden: roost counts, call recordings, loft entrances, dusk emergence, moth hunting
    Seals = Pinnipeds; Sea Dogs / Robben + counts
      ~ coast: haul-outs, pupping, moult, net damage, sandbank counts, whiskered heads
    Porpoises = ^Phocoena; Herring Hogs / Schweinswale < Marine Life
    Moles = ^Talpa; Mouldwarps / Maulwürfe
  Birds = ^Aves; Wildfowl and Songbirds / Vögel + migration counts
    ~ field river: clutch size, fledging, ringing totals, song posts, nest boxes, first arrivals
    Water Birds = Waterfowl; Wetland Birds / Wasservögel
      ~ river coast: flocks on open water, nest rafts, winter roosts, moulting flocks, duck decoys
      ~ wing tags, reed nests, bill shapes
      Ducks, Wild = ^Anas / Wildenten + counts
      Geese, Wild = Grey Geese / Wildgänse + counts
      Swans = ^Cygnus / Schwäne
      Herons = ^Ardea; Fisher Birds / Reiher
      Bitterns = ^Botaurus; Boomers / Rohrdommeln
      Kingfishers = ^Alcedo; Halcyons / Eisvögel
      Cormorants = Sea Crows / Kormorane < Sea Birds
      Cranes = Grus grus / Kraniche + migration
    Sea Birds = Marine Birds / Seevögel
      ~ coast: cliff ledges, colony counts, plunge diving, chick growth, guano, storm-driven wrecks
      Gulls = ^Larus; Mews / Möwen
      Terns = ^Sterna; Sea Swallows / Seeschwalben + counts
      Puffins = ^Fratercula; Sea Parrots / Papageitaucher
      Oystercatchers = ^Haematopus; Mussel Pickers / Austernfischer
    Farmland Birds = Field Birds / Feldvögel + counts
      ~ field: skylines, stubble flocks, ground nests, seed feeding, song flights, headland strips
      Skylarks = Alauda arvensis / Feldlerchen
      Lapwings = Peewits; ^Vanellus / Kiebitze
      Partridges = ^Perdix / Rebhühner
      Corncrakes = Crex crex; Land Rails / Wachtelkönige
      Storks = ^Ciconia / Störche + migration
    Garden Birds = Songbirds / Gartenvögel
      ~ garden: feeding tables, dawn chorus, nest boxes, berry bushes, fledged broods, bird baths
      Robins = ^Erithacus; Redbreasts / Rotkehlchen
      Blackbirds = Turdus merula; Merles / Amseln
      Titmice = ^Parus / Meisen
      Finches = ^Fringillidae / Finken
      Swallows = ^Hirundo / Schwalben + migration
      Swifts = ^Apus; Devil Birds / Mauersegler + migration
    Birds of Prey = Raptors / Greifvögel + counts
      ~ forest field: pellets, aerial displays, eyries, hunting perches, prey remains
      Owls = ^Strigiformes / Eulen
      Kites = ^Milvus; Gleads / Milane
      Buzzards = ^Buteo / Bussarde
      Sea Eagles = Ernes; ^Haliaeetus / Seeadler < Sea Birds
  Fishes = ^Pisces; Finfish / Fische
    ~ river coast: scale readings, spawning beds, length classes, netted samples, gut contents
    River Fishes = Freshwater Fishes / Flussfische
      ~ river: spawning gravels, riffle habitat, fry counts, electric nets, smolt traps, redds
      ~ holding pools, fin clips, scale readings, hatchery boxes
      Salmon = Salmo salar / Lachse + migration counts young
      Brown Trout = Salmo trutta; Brook Fish / Forellen + young rearing
      Eels = ^Anguilla / Aale + migration counts young
      Pike = Esox lucius; Luces / Hechte
      Perch = Perca fluviatilis / Barsche
      Carp = ^Cyprinus / Karpfen + rearing
      Bream = Abramis brama / Brachsen
      Sturgeons = ^Acipenser / Störe
      Lampreys = Nine-Eyes; ^Petromyzon / Neunaugen
      Sticklebacks = Tiddlers / Stichlinge
    Sea Fishes = Marine Fishes / Meeresfische
      ~ coast: landings, otoliths, drift nets, shoals, egg surveys, cod ends, mesh size
      ~ by-catch, inshore grounds
      Herring = ^Clupea; Silver Darlings / Heringe + migration counts
      Cod = Gadus morhua / Dorsche + counts
      Mackerel = ^Scomber / Makrelen
      Plaice = ^Pleuronectes; Flatfish / Schollen
  Small Life = Invertebrates / Wirbellose
    ~ garden field: sweep nets, pitfall traps, larval stages, wing patterns, egg masses
    Insects = Hexapods; ^Insecta / Insekten
      ~ garden field: light traps, pupation, host plants, transect walks, wingbeats, sticky cards
      ~ larval stages, second broods
      Butterflies = ^Lepidoptera; Day Flyers / Schmetterlinge + counts migration
      Moths = Night Flyers / Nachtfalter
      Bumblebees = ^Bombus; Humble Bees / Hummeln + counts
      Solitary Bees = Mason Bees / Wildbienen
      Ladybirds = ^Coccinellidae / Marienkäfer
      Ground Beetles = ^Carabidae / Laufkäfer
      Dragonflies = ^Odonata / Libellen
      Mayflies = ^Ephemeroptera; Dayflies / Eintagsfliegen < River Invertebrates
      Hoverflies = ^Syrphidae / Schwebfliegen
      Grasshoppers = ^Orthoptera / Heuschrecken
    River Invertebrates = Stream Insects; Macroinvertebrates
      ~ river: kick samples, riffle stones, caddis cases, indicator scores, silted gravel
      Crayfish = ^Astacus; River Lobsters / Flusskrebse + counts
      Freshwater Mussels = Pearl Mussels / Flussmuscheln
      Caddisflies = ^Trichoptera / Köcherfliegen
    Earthworms = ^Lumbricus; Angle Worms / Regenwürmer
    Spiders = ^Araneae / Spinnen
    Snails = Gastropods / Schnecken
    Marine Life = Marine Invertebrates; Sea Creatures
      ~ coast: low-tide counts, shell length, spat falls, rock pools, dredge hauls, larval drift
      Oysters = ^Ostrea; Natives / Austern + rearing counts
      Mussels = ^Mytilus / Miesmuscheln + rearing
      Shore Crabs = ^Carcinus; Green Crabs / Strandkrabben
      Lobsters = ^Homarus / Hummer + counts
      Shrimps = ^Crangon / Garnelen
      Jellyfish = Medusae / Quallen
"""
