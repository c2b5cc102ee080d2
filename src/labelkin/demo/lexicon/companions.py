"""Companions: headings that a reader expects beside another, such as potatoes beside late blight.

Each line names a heading and, after the colon, its companions. They are what an indexer adds
although the text may only imply them; without them, headings would occur together only because
a random topic unites them.
"""

from __future__ import annotations

COMPANIONS = """
Late Blight: Potatoes; Potato Diseases
Fire Blight: Pears; Pear Diseases
Scab Diseases: Apples; Apple Diseases
Canker: Apples
Rust Diseases: Wheat; Wheat Diseases
Smut Diseases: Wheat; Seed Treatment
Ergot: Rye
Powdery Mildew: Grapevines
Downy Mildew: Hops
Grey Mould: Strawberries
Club Root: Cabbages
Honey Fungus: Broadleaved Trees
Damping Off: Nursery Raising
Yellows Disease: Sugar Beets
Bitter Pit: Apple Storage
Blossom End Rot: Tomatoes
Colorado Beetles: Potatoes
Codling Moths: Apples
Cabbage Whites: Cabbages
Carrot Flies: Carrots
Wireworms: Potatoes
Bark Beetles: Spruces
Grain Weevils: Granaries; Crop Storage
Cockchafers: Grasslands
Vine Lice: Grapevines
Slugs: Lettuces; Pests
Aphids: Field Beans
Rats: Granaries
Voles: Orchards
Deer Damage: Deer
Bird Damage: Birds
Foot-and-Mouth Disease: Cattle; Livestock Diseases
Mastitis: Dairy Cows; Livestock Diseases
Foot Rot of Sheep: Sheep; Livestock Diseases
Liver Fluke: Sheep
Sheep Scab: Sheep; Livestock Diseases
Swine Fever: Pigs; Livestock Diseases
Milk Fever: Dairy Cows
Bloat: Cattle
Tick Fever: Cattle
Fowl Pest: Chickens
Coccidiosis: Chickens
Foulbrood: Honeybees; Beekeeping
Varroa Mites: Honeybees; Beekeeping
Salmon Lice: Salmon
Crayfish Plague: Crayfish
Flash Floods: Brooks
Storm Surges: Sea Walls; Coastal Defence
Ice Jams: Rivers
Late Frost: Orchard Fruits; Frost Protection
Storms: Wind; Weather
Drought: Irrigation
Wildfires: Heaths
Soil Erosion: Slopes
Coastal Erosion: Sea Cliffs
Soil Compaction: Tractors
Salt Intrusion: Saline Soils
Peat Shrinkage: Peat Soils
Sand Drift: Dunes
Water Pollution: Water Quality
Nitrate Leaching: Nitrogen; Groundwater
Oil Spills: Sea Birds
Water Blooms: Lakes
Giant Hogweed: River Banks
Signal Crayfish: Crayfish
Wheat, Winter: Wheat
Barley, Winter: Barley
Wheat Storage: Wheat; Crop Storage
Potato Storage: Potatoes; Crop Storage
Apple Storage: Apples; Crop Storage
Granaries: Crop Storage
Root Cellars: Crop Storage
Maize: Silage Making
Hops: Beer
Woad: Natural Dyes
Madder: Natural Dyes
Flax: Linen
Hemp: Oil and Fibre Crops
Clover: Forage Crops
Lucerne: Forage Crops
Cider Apples: Cider
Perry Pears: Perry
Grapevines: Vineyards
Apples: Orchards
Pears: Orchards
Plums: Orchards
Cherries: Orchards
Strawberries: Soft Fruits
Raspberries: Soft Fruits
Tulips: Bulb Plants
Daffodils: Bulb Plants
Lavender: Kitchen Herbs
Thyme: Kitchen Herbs
Oaks: Broadleaved Trees
Beeches: Broadleaved Trees
Pines: Conifers
Spruces: Conifers
Reeds: Thatch
Willows: Wicker
Marram Grass: Dunes
Samphire: Salt Marshes
Eelgrass: Sea Bed
Hawthorns: Hedgerows
Blackthorns: Hedgerows
Cowslips: Meadows
Wild Orchids: Meadows
Heather: Heaths
Gorse: Heaths
Bracken: Heaths
Peat Mosses: Bogs
Kelp: Seaweeds
Dairy Cows: Milk; Milking
Beef Cattle: Meat
Calves: Cattle
Ewes: Sheep
Lambs: Lambing
Piglets: Pigs
Draught Horses: Horses
Chickens: Eggs
Honeybees: Beekeeping; Honey
Otters: Rivers
Beavers: Wetlands
Seals: Coasts
Ducks, Wild: Water Birds
Bitterns: Reeds
Gulls: Sea Birds
Terns: Sea Birds
Puffins: Sea Cliffs
Skylarks: Farmland Birds
Lapwings: Farmland Birds
Robins: Garden Birds
Swallows: Barns
Salmon: River Fishes
Brown Trout: Brooks
Eels: River Fishes
Carp: Ponds
Herring: Net Fishing
Cod: Sea Fishes
Mackerel: Line Fishing
Bumblebees: Flowers
Crayfish: Brooks
Freshwater Mussels: River Beds
Oysters: Shellfish Gathering; Estuaries
Mussels: Shellfish Gathering
Lobsters: Fish Traps
Shrimps: Net Fishing
Clay Soils: Soils
Sandy Soils: Soils
Peat Soils: Fens
Fens: Wetlands
Bogs: Wetlands
Marshes: Wetlands
Salt Marshes: Coasts
Mudflats: Coasts
Sandy Beaches: Coasts
Dunes: Coasts
Sea Cliffs: Coasts
Hay Meadows: Haymaking
Coppice Woods: Coppicing
Hedgerows: Hedge Laying
Allotments: Vegetables
Kitchen Gardens: Vegetables
Ploughing: Ploughs
Sowing: Seed Drills
Composting: Gardens
Slurry: Cattle
Liming: Soil Acidity
Green Manuring: Clover
Threshing: Threshing Machines
Haymaking: Hay
Silage Making: Silage
Milking: Milk
Shearing: Wool; Sheep
Lambing: Sheep
Herding: Sheep
Beekeeping: Honey; Honeybees
Ditches: Drainage
Tile Drains: Drainage
Wind Pumps: Drainage
Weirs: Rivers
Fish Passes: Weirs; Salmon
Mill Races: Watermills
Watermills: Flour
Windmills: Flour
Sea Walls: Coastal Defence
Groynes: Coastal Defence
Angling: Brown Trout
Fishing Boats: Harbours
Fish Farming: Carp
Charcoal Burning: Woodlands
Coppicing: Firewood
Felling: Timber
Scythes: Haymaking
Butter: Milk
Cheese: Milk
Bread: Flour
Malt: Barley
Ham: Pigs
Honey: Honeybees
Smoked Fish: Herring
Cider: Apples
Perry: Pears
Beer: Malt
Wine: Vineyards
Mead: Honey
Wool: Sheep
Linen: Flax
Timber: Forestry
Firewood: Forestry
Peat Fuel: Bogs
Shepherds: Sheep
Millers: Watermills
Fishers: Fishing
Foresters: Forestry
Beekeepers: Honeybees
Water Boards: Drainage
Fishery Laws: Fishing
Harvest Festivals: Harvesting
"""
