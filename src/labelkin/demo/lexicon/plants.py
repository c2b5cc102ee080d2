"""Headings of category A: what grows in Ellmark's fields, gardens, woods and waters."""

from __future__ import annotations

OUTLINE = """
Plants = Flora; Plant Life / Pflanzen
  ~ field garden: shoot length, leaf area, seed set, sap flow, root depth, flowering dates
  Crop Plants = Arable Plants; Cultivated Plants / Nutzpflanzen
    ~ field: sowing dates, plant density, row spacing, yield per plot, lodging, ripening dates
    Cereals = Grain Crops; Corn / Getreide
      ~ field: tillering, ear emergence, grain filling, straw length, kernel weight, stubble
      ~ bran content, sheaves, awned heads, milling quality, sprouted kernels, lodged stems
      Wheat = Bread Corn; Triticum aestivum / Weizen + winter spring diseases breeding storage
      Barley = Hordeum vulgare; Malting Corn / Gerste + winter spring breeding
      Rye = Secale cereale / Roggen + winter breeding
      Oats = Avena sativa; Horse Corn / Hafer + spring harvest
      Spelt = Dinkel; Hulled Corn / Dinkel
      Millet = Panicum miliaceum / Hirse
      Buckwheat = ^Fagopyrum; Heath Corn / Buchweizen
      Maize = Zea mays; Corn / Mais + diseases breeding storage
    Root Crops = Roots for Eating; Tuber Crops / Hackfrüchte
      ~ field garden: ridging, tuber set, haulm growth, clamp storage, forked taproots, skin finish
      ~ dry matter, crown height, bolting, lifting dates, hollow hearts, earthing up
      Potatoes = Solanum tuberosum; Spuds / Kartoffeln + early diseases storage breeding harvest
      Sugar Beets = Beta vulgaris; Sugar Roots / Zuckerrüben + harvest
      Fodder Beets = Mangolds / Futterrüben
      Turnips = Brassica rapa; Neeps / Speiserüben
      Carrots = Daucus carota / Möhren + storage
      Parsnips = Pastinaca sativa / Pastinaken
      Radishes = Raphanus sativus / Radieschen
    Pulses = Grain Legumes; Seed Legumes / Hülsenfrüchte
      ~ field garden: pod set, root nodules, climbing tendrils, seed coats, shelling, nitrogen gain
      ~ stake rows, flower drop, hard seeds, vining
      Field Beans = Vicia faba; Horse Beans / Ackerbohnen + winter spring diseases
      Runner Beans = Scarlet Beans / Feuerbohnen
      Peas = Pisum sativum / Erbsen + breeding
      Lentils = Lens culinaris / Linsen
      Chickpeas = Cicer arietinum
      Lupins = ^Lupinus; Wolf Beans / Lupinen
      Vetches = Tares / Wicken
    Vegetables = Kitchen Crops; Greens / Gemüse
      ~ garden: transplants, head formation, cold frames, cut-and-come-again beds, succession sowing
      ~ outer leaves, bolted stems, hearting, crate weights, watering cans
      Cabbages = Brassica oleracea; Headed Greens / Kohl + winter storage
      Kale = Borecole; Curly Greens / Grünkohl
      Lettuces = Lactuca sativa / Salat
      Spinach = Spinacia oleracea / Spinat
      Chard = Leaf Beet / Mangold
      Onions = Allium cepa / Zwiebeln + storage
      Leeks = Allium porrum / Lauch
      Garlic = Allium sativum / Knoblauch
      Tomatoes = Love Apples; Solanum lycopersicum / Tomaten + diseases dwarf
      Cucumbers = Cucumis sativus / Gurken
      Pumpkins = Winter Squashes; Gourds / Kürbisse
      Asparagus = Sparrow Grass / Spargel
      Rhubarb = Pie Plant / Rhabarber
      Celery = Apium graveolens / Sellerie
    Oil and Fibre Crops = Industrial Crops
      ~ field: retting, seed capsules, oil content, bast fibre, scutching, stalk height
      ~ seed shedding, fibre length, blue flowers, pressing cake
      Flax = Linum usitatissimum; Linseed / Lein + harvest
      Hemp = Cannabis sativa / Hanf
      Rapeseed = Oilseed Rape; Brassica napus / Raps + winter
      Sunflowers = Helianthus annuus / Sonnenblumen
      Hops = Humulus lupulus / Hopfen + harvest diseases
      Dye Plants = Colour Herbs / Färberpflanzen
        Woad = Isatis tinctoria / Färberwaid
        Madder = Rubia tinctorum / Krapp
    Forage Crops = Fodder Plants / Futterpflanzen
      ~ field stock: sward height, regrowth after cutting, aftermath, seed mixtures
      ~ leaf-to-stem ratio, bite depth, undersowing, wilting, persistence, tussocks
      Clover = ^Trifolium; Trefoil / Klee + breeding
      Lucerne = Alfalfa; Medicago sativa / Luzerne
      Ryegrass = ^Lolium / Weidelgras
      Timothy Grass = Cat's-Tail; Phleum pratense
      Sainfoin = Holy Clover / Esparsette
  Fruit Plants = Fruit Crops / Obstpflanzen
    ~ orchard: fruit set, blossom thinning, scion wood, windfalls, crop load, picking ladders
    Orchard Fruits = Tree Fruits / Baumobst
      ~ orchard: blossom dates, fruit drop, russeting, grafted scions
      ~ picking ladders, flesh firmness, windfalls, juice yield, espaliers, alternate bearing
      Apples = Malus domestica; Pippins / Äpfel + diseases breeding storage harvest pruning trade
        Cider Apples = Bittersweets / Mostäpfel
      Pears = Pyrus communis / Birnen + diseases storage pruning
        Perry Pears = Barland Pears / Mostbirnen
      Plums = Prunus domestica / Pflaumen + pruning harvest
      Cherries = Prunus avium; Mazzards / Kirschen + harvest pruning wild
      Quinces = Cydonia oblonga / Quitten
      Medlars = Mespilus germanica / Mispeln
      Apricots = Moon Plums / Aprikosen
      Peaches = Prunus persica / Pfirsiche
    Soft Fruits = Berry Fruits; Small Fruits / Beerenobst
      ~ orchard garden: runners, cane tying, punnets, netting against birds, berry weight
      ~ straw mulch, fruiting trusses, bush spacing, hand picking, juice colour
      Strawberries = ^Fragaria / Erdbeeren + diseases breeding wild
      Raspberries = Rubus idaeus / Himbeeren + diseases
      Blackberries = Brambles / Brombeeren + wild
      Currants = ^Ribes / Johannisbeeren + pruning
      Gooseberries = Feaberries / Stachelbeeren
      Bilberries = Whortleberries; Vaccinium myrtillus / Heidelbeeren
      Cranberries = Fen Berries / Moosbeeren
      Elderberries = Sambucus nigra / Holunder
      Sea Buckthorn = ^Hippophae / Sanddorn < Coastal Plants
    Grapevines = Vitis vinifera; Vines / Weinreben + diseases pruning harvest
      ~ orchard: must weight, trellis wires, bud break, bunch closure, veraison, south-facing rows
    Nut Trees = Nut Crops / Nussbäume
      ~ orchard forest: husk split, kernel weight, catkins, mast years, shell thickness, nut drop
      Walnuts = Juglans regia / Walnüsse + harvest
      Hazelnuts = Cobnuts; Corylus avellana / Haselnüsse
      Chestnuts, Sweet = Castanea sativa / Edelkastanien
      Almonds = Prunus dulcis / Mandeln
  Garden Plants = Ornamentals / Gartenpflanzen
    ~ garden: border planting, flower colour, staking, dead-heading, division, scent
    Bulb Plants = Flowering Bulbs; Geophytes / Zwiebelpflanzen
      ~ garden: offsets, planting depth, spring display, petal markings, forcing pots
      ~ show benches, naturalised drifts, bulb size, summer dormancy
      Tulips = ^Tulipa / Tulpen + breeding trade
      Daffodils = ^Narcissus; Lent Lilies / Narzissen
      Snowdrops = ^Galanthus / Schneeglöckchen
      Crocuses = Saffron Flowers / Krokusse
      Lilies = ^Lilium / Lilien
    Roses = ^Rosa; Queen of Flowers / Rosen + climbing dwarf breeding pruning diseases
      ~ garden: hips, petal count, repeat flowering, budding eyes, suckers, briar stocks
      ~ perfume, arching canes, bloom size, thorn density
      Damask Roses = Attar Roses
      Dog Roses = Briars; Rosa canina / Hundsrosen < Hedgerow Plants
    Border Perennials = Herbaceous Perennials / Stauden
      ~ garden: clump division, basal shoots, late colour, plant supports, cut stems, border depth
      ~ self-sown seedlings, autumn tidying, crown rot, vase life
      Peonies = ^Paeonia / Pfingstrosen
      Irises = Sword Lilies; Flags / Schwertlilien
      Michaelmas Daisies = Asters / Astern
      Delphiniums = Larkspurs / Rittersporne
      Foxgloves = ^Digitalis; Witch Bells / Fingerhüte
      Hollyhocks = ^Alcea / Stockrosen
      Primroses = ^Primula / Primeln
    Annual Flowers = Summer Bedding / Sommerblumen
      ~ garden: half-hardy seedlings, seed trays, pricking out, window boxes, first frosts
      ~ posies, companion rows, pinching out
      Marigolds = ^Tagetes / Ringelblumen
      Cornflowers = Bluebottles; Centaurea cyanus / Kornblumen
      Sweet Peas = Lathyrus odoratus / Duftwicken
      Nasturtiums = Indian Cress
    Kitchen Herbs = Culinary Herbs; Pot Herbs / Küchenkräuter
      ~ garden: essential oils, drying racks, leaf sprigs, sunny edging, cuttings, flavour
      ~ still room notes, herb spirals, bee visits
      Thyme = ^Thymus / Thymian + wild
      Sage = Salvia officinalis / Salbei
      Mint = ^Mentha / Minze
      Lavender = ^Lavandula / Lavendel + harvest
      Rosemary = Old Man Herb / Rosmarin
      Chamomile = ^Matricaria / Kamille
      Parsley = ^Petroselinum / Petersilie
      Dill = Anethum graveolens
    Ornamental Shrubs = Flowering Shrubs / Ziersträucher
      ~ garden: topiary, flowering wood, layering, evergreen screens, acid beds, clipped edges
      ~ shelter belts, winter outline
      Lilacs = ^Syringa / Flieder
      Hydrangeas = Mopheads / Hortensien
      Rhododendrons = Rose Bays
      Boxwood = ^Buxus / Buchsbaum + diseases pruning
    Climbing Plants = Climbers; Lianas / Kletterpflanzen
      ~ garden: arbours, wall ties, twining stems, aerial roots, trellises, pergola shade
      Ivy = Hedera helix / Efeu
      Clematis = Virgin's Bower / Waldreben
      Honeysuckle = Woodbine; ^Lonicera / Geißblatt
  Trees = Woody Plants; Timber Trees / Bäume
    ~ forest: girth, canopy cover, ring widths, seedlings, crown dieback, coppice stools
    Broadleaved Trees = Hardwoods; Deciduous Trees / Laubbäume
      ~ forest: leaf fall, coppice shoots, mast, crown spread, bark fissures, saplings
      ~ pollards, ring width, hollow trunks, stool regrowth, planted avenues
      Oaks = ^Quercus / Eichen + diseases restoration
      Beeches = Fagus sylvatica / Buchen
      Birches = ^Betula / Birken
      Alders = ^Alnus; Brook Trees / Erlen
      Ash Trees = Fraxinus excelsior / Eschen + diseases
      Willows = ^Salix; Osiers / Weiden + pruning
      Poplars = ^Populus / Pappeln
      Linden Trees = ^Tilia; Lime Trees / Linden
      Elms = ^Ulmus / Ulmen + diseases
      Maples = ^Acer / Ahorne
      Rowans = Mountain Ashes / Ebereschen
    Conifers = Softwoods; Needle Trees / Nadelbäume
      ~ forest: needle loss, resin flow, cones, straight stems, nursery stock, windthrow
      ~ sawlogs, thinning marks, needle litter
      Pines = ^Pinus / Kiefern + diseases
      Spruces = ^Picea / Fichten
      Larches = ^Larix / Lärchen
      Firs = ^Abies / Tannen
      Yews = Taxus baccata / Eiben
      Junipers = ^Juniperus / Wacholder
  Wild Plants = Native Flora / Wildpflanzen
    ~ river field forest: ground cover, buried seed, patch size, rare finds, flower counts
    Water Plants = Aquatic Plants; Macrophytes / Wasserpflanzen
      ~ river: floating leaves, rhizomes, stem beds, cut swathes, open pools, shading
      ~ underwater meadows, rafts of leaves, bank cover
      Reeds = ^Phragmites; Thatching Grass / Schilf + harvest restoration
      Sedges = ^Carex / Seggen
      Water Lilies = ^Nymphaea / Seerosen
      Pondweeds = ^Potamogeton / Laichkräuter
      Bulrushes = Reedmace; ^Typha / Rohrkolben
      Duckweed = ^Lemna; Water Lentils / Wasserlinsen
      Watercress = Nasturtium officinale / Brunnenkresse
    Coastal Plants = Shore Plants; Halophytes / Küstenpflanzen
      ~ coast: salt tolerance, sand binding, strandline patches, fleshy leaves, spray zones
      ~ pioneer tufts, seed drift, trampling
      Marram Grass = Dune Grass; ^Ammophila / Strandhafer
      Sea Kale = Crambe maritima / Meerkohl
      Samphire = Glasswort; ^Salicornia / Queller
      Thrift = Sea Pinks; ^Armeria / Grasnelken
      Sea Lavender = ^Limonium / Strandflieder
      Eelgrass = ^Zostera; Seagrass / Seegras + restoration
    Hedgerow Plants = Hedge Species / Heckenpflanzen
      ~ field: stock-proof lines, gaps, laid stems, nesting cover, berries, bank profiles
      Hawthorns = Quickset; ^Crataegus / Weißdorne
      Blackthorns = Sloes; Prunus spinosa / Schlehen
    Weeds = Unwanted Plants; Arable Flora / Unkräuter
      ~ field garden: seed rain, hoeing passes, deep rhizomes, seedling flushes, smothered rows
      ~ dirty headlands, seed longevity, hand pulling
      Thistles = ^Cirsium / Disteln
      Docks = ^Rumex; Butter Leaves / Ampfer
      Nettles = Urtica dioica / Brennnesseln
      Couch Grass = Twitch; Elymus repens / Quecken
      Bindweed = Devil's Guts; ^Convolvulus / Winden
      Ragwort = Stinking Willie / Jakobskraut
    Meadow Flowers = Grassland Flora / Wiesenblumen
      ~ field: hay-time flowering, seed heads, short turf, nectar supply, late mowing, green hay
      Cowslips = Primula veris; Keys of Heaven / Schlüsselblumen
      Wild Orchids = ^Orchidaceae / Orchideen
      Yarrow = ^Achillea / Schafgarben
      Buttercups = ^Ranunculus / Hahnenfüße
    Heath Plants = Moorland Plants / Heidepflanzen
      ~ field stock: cyclic burning, leggy growth, sheep tracks, acid ground, purple bloom
      Heather = Ling; Calluna vulgaris / Heidekraut + restoration
      Gorse = Furze; Whin / Stechginster
      Bracken = ^Pteridium; Hill Fern / Adlerfarn
      Peat Mosses = ^Sphagnum / Torfmoose
  Fungi and Algae = Lower Plants
    ~ forest coast: spore prints, fruiting bodies, tidal cover, frond length, damp rides
    Edible Mushrooms = Table Fungi / Speisepilze
      ~ forest: gills, autumn baskets, fruiting flushes, spore prints, leaf mould
      Chanterelles = ^Cantharellus; Girolles / Pfifferlinge
      Field Mushrooms = Agaricus campestris / Wiesenchampignons
      Truffles = ^Tuber; Earth Nuts / Trüffeln
    Lichens = Tree Moss / Flechten
    Mycorrhizas = Root Fungi; Fungal Roots / Mykorrhizen
    Seaweeds = Marine Algae; Wrack / Meeresalgen
      ~ coast: holdfasts, drift lines, blade growth, tidal cover, raking, frond length
      Kelp = ^Laminaria; Tangle / Tang + harvest restoration
      Dulse = Palmaria palmata / Lappentang
    Blue-Green Algae = Cyanobacteria / Blaualgen < Water Blooms
  Plant Parts = Plant Organs / Pflanzenteile
    ~ garden field: germination tests, wood anatomy, tissue samples, moisture content, bud scales
    Seeds = Seed Grain; Propagules / Samen
    Roots = Root Systems / Wurzeln
    Leaves = Foliage / Blätter
    Flowers = Blossoms; Inflorescences / Blüten
    Buds = Gemmae / Knospen
    Rootstocks = Understocks / Unterlagen < Grafting
    Pollen = Flower Dust / Blütenstaub
"""
