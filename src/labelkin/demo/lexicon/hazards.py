"""Headings of category D: what goes wrong with crops, beasts, ground and water."""

from __future__ import annotations

OUTLINE = """
Disorders and Hazards = Harms; Troubles of Land / Schäden und Gefahren
  ~ field stock: loss estimates, first reports, affected parishes, recovery, warning signs
  Plant Diseases = Phytopathology; Disorders of Plants / Pflanzenkrankheiten
    ~ field garden orchard: lesions, spore counts, wilting leaves, resistant lines, spray dates
    Crop Diseases = Diseases of Crops / Kulturpflanzenkrankheiten
      ~ field: infection periods, spore counts, resistant lines, disease scores, inoculum
    Fungal Diseases = Mycoses of Plants / Pilzkrankheiten
      ~ field garden orchard: spore counts, leaf spots, fruiting pustules
      ~ white coatings, infection periods, cankered twigs, damp nights, copper sprays
      Rust Diseases = Rust; ^Puccinia / Rostkrankheiten
      Smut Diseases = Bunt; ^Ustilago / Brandkrankheiten
      Powdery Mildew = ^Erysiphe; White Mildew / Echter Mehltau
      Downy Mildew = ^Peronospora / Falscher Mehltau
      Late Blight = Phytophthora infestans; Blight / Krautfäule
      Fire Blight = ^Erwinia; Blight / Feuerbrand
      Ergot = ^Claviceps; Spurred Grain / Mutterkorn
      Scab Diseases = ^Venturia; Scab / Schorf
      Canker = ^Nectria; Bark Rot / Krebs
      Grey Mould = ^Botrytis; Mould / Grauschimmel
      Root Rot = Foot Rot / Wurzelfäule
      Club Root = Finger and Toe / Kohlhernie
      Honey Fungus = ^Armillaria; Bootlace Fungus / Hallimasch
      Damping Off = Seedling Collapse / Umfallkrankheit
    Viral Plant Diseases = Mosaics / Viruskrankheiten
      ~ field garden: mottled leaves, vector counts, test plants, stunted rows, roguing
      Mosaic Disease = Mottle / Mosaikkrankheit
      Yellows Disease = Jaundice of Beets
    Deficiency Disorders = Hunger Signs / Mangelkrankheiten
      ~ field orchard: yellowing between veins, leaf analysis, foliar sprays
      ~ pale margins, stunted shoots
      Chlorosis = Yellow Leaf; Greensickness / Chlorose
      Bitter Pit = Stippen; Storage Pits / Stippigkeit
      Blossom End Rot = Black Bottom
  Pests = Vermin; Noxious Animals / Schädlinge
    ~ field garden orchard: trap catches, gnawed stems, threshold counts, hatch dates, bait stations
    Insect Pests = Harmful Insects / Schadinsekten
      ~ field garden orchard: sticky cards, larval galleries, hatch dates, threshold counts
      ~ leaf holes, pheromone lures, egg clusters, natural enemies
      Aphids = Plant Lice; Greenfly / Blattläuse
      Colorado Beetles = Potato Beetles; ^Leptinotarsa / Kartoffelkäfer
      Codling Moths = Cydia pomonella; Apple Worms / Apfelwickler
      Cabbage Whites = ^Pieris / Kohlweißlinge
      Carrot Flies = Psila rosae; Rust / Möhrenfliegen
      Wireworms = Click Beetle Larvae; ^Agriotes / Drahtwürmer
      Bark Beetles = ^Ips; Engraver Beetles / Borkenkäfer
      Grain Weevils = ^Sitophilus / Kornkäfer
      Cockchafers = May Bugs; ^Melolontha / Maikäfer
      Gall Midges = ^Cecidomyiidae; Gall Gnats / Gallmücken
      Scale Insects = Coccids / Schildläuse
      Vine Lice = ^Phylloxera / Rebläuse
    Mites = ^Acari; Red Spiders / Milben
    Slugs = Naked Snails; ^Limax / Nacktschnecken
    Eelworms = Nematodes; Roundworms / Fadenwürmer
    Rodent Pests = Mice and Rats / Schadnager
      ~ field stock: bait stations, gnawed sacks, burrow counts, granary damage, trap lines
      Rats = ^Rattus; Longtails / Ratten
      Voles = ^Microtus; Field Mousers / Wühlmäuse
    Bird Damage = Bird Scathe / Vogelfraß
    Deer Damage = Browsing Damage / Wildschäden
  Animal Diseases = Epizootics; Veterinary Disorders / Tierkrankheiten
    ~ stock: mortality, quarantine stalls, blood samples, vet visits, isolation, carcass counts
    Livestock Diseases = Murrain; Ailments of Beasts / Nutztierkrankheiten
      ~ stock: quarantine stalls, fever charts, vaccination, herd testing, lameness, farm visits
      ~ movement bans, drench, scouring
      Foot-and-Mouth Disease = FMD; Aphthous Fever / Maul- und Klauenseuche
      Mastitis = Udder Inflammation; Garget / Euterentzündung
      Foot Rot of Sheep = Foot Rot; Hoof Scald / Moderhinke
      Liver Fluke = ^Fasciola; Rot of Sheep / Leberegel
      Sheep Scab = ^Psoroptes; Scab / Schafräude
      Swine Fever = Hog Cholera / Schweinepest
      Milk Fever = Calving Paresis / Milchfieber
      Bloat = Hoven; Tympany / Pansenblähung
      Ringworm = Tinea; Trichophytosis / Flechte
      Tick Fever = Redwater; Babesiosis / Weiderot
    Poultry Diseases = Fowl Ailments / Geflügelkrankheiten
      ~ stock: flock losses, pale combs, culling, litter moisture, coughing birds
      Fowl Pest = Newcastle Disease; ND / Geflügelpest
      Coccidiosis = Coccidia Infection / Kokzidiose
    Bee Diseases = Hive Disorders / Bienenkrankheiten < Insect Pests
      ~ garden orchard: brood patterns, sunken cells, mite drop, dead clusters, hive burning
      Foulbrood = Brood Rot / Faulbrut
      Varroa Mites = Varroa / Varroamilben < Mites
    Fish Diseases = Ichthyopathology / Fischkrankheiten
      ~ river coast: pale gills, skin ulcers, hatchery losses, holding tanks, lice counts
      Salmon Lice = ^Lepeophtheirus / Lachsläuse
      Crayfish Plague = ^Aphanomyces / Krebspest
  Natural Hazards = Natural Disasters; Calamities / Naturgefahren
    ~ river coast field: warning flags, damage claims, high-water marks, relief funds
    ~ return periods
    Floods = Inundations; High Waters / Hochwasser
      ~ river: crest heights, sandbags, breached walls, flood marks, return periods, evacuated farms
      ~ silted cellars, warning times
      Flash Floods = Cloudburst Floods; Spates / Sturzfluten
      Storm Surges = Sea Floods; Surges / Sturmfluten
      Ice Jams = Ice Dams / Eisstau
    Drought = Dry Spells; Water Shortage / Dürre
    Frost = Freezing / Frost
      ~ orchard garden field: smudge pots, blackened blossom, radiation nights
      ~ fleece covers, clear skies
      Late Frost = Blossom Frost; Ice Saints / Spätfröste
    Hail = Hailstorms / Hagel
    Storms = Gales; Tempests / Stürme
    Landslides = Slips; Earth Falls / Erdrutsche
    Wildfires = Heath Fires; Forest Fires / Waldbrände
  Land Degradation = Land Decay / Bodendegradation
    ~ field coast: rill counts, crusted surfaces, lost topsoil, bare patches, rut depth
    Soil Erosion = Soil Wash; Gullying / Bodenerosion
    Coastal Erosion = Shore Loss; Cliff Retreat / Küstenerosion
    Soil Compaction = Pan Formation / Bodenverdichtung
    Salt Intrusion = Salinisation / Versalzung
    Peat Shrinkage = Peat Wastage / Moorsackung
    Sand Drift = Blown Sand / Sandverwehung
  Pollution = Contamination; Fouling / Verschmutzung
    ~ river coast: outfalls, residue limits, fish kills, sampling bottles, oily film, foul smells
    Water Pollution = Fouled Waters / Wasserverschmutzung
    Nitrate Leaching = Nitrogen Loss / Nitratauswaschung
    Pesticide Residues = Spray Traces / Pestizidrückstände
    Oil Spills = Slicks / Ölverschmutzung
    Marine Litter = Beach Rubbish; Flotsam / Meeresmüll
    Water Blooms = Algal Blooms; HAB / Algenblüten
    Heavy Metals = Toxic Metals / Schwermetalle
  Invasive Species = Alien Species; Introduced Pests / Invasive Arten
    ~ river garden: spread maps, volunteer pulling, seed drift, smothered banks, eradication costs
    Giant Hogweed = ^Heracleum; Cartwheel Flower / Riesen-Bärenklau
    Himalayan Balsam = Policeman's Helmet; Jumping Jack / Drüsiges Springkraut
    Knotweed = ^Reynoutria; Donkey Rhubarb / Staudenknöterich
    Signal Crayfish = ^Pacifastacus / Signalkrebse < Crayfish
"""
