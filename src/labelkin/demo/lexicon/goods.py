"""Headings of category F: products, trade, people and rural society."""

from __future__ import annotations

OUTLINE = """
Goods and Society = Rural Economy; Country Life / Güter und Gesellschaft
  ~ village: account books, parish letters, household size, local customs, hearth counts
  Foods = Victuals; Foodstuffs / Lebensmittel
    ~ village stock: recipes, tasting panels, shelf life, cellar notes, market stalls, flavour
    Dairy Products = Milk Products / Milchprodukte
      ~ stock village: cream lines, rennet, churn days, curd texture, salting, ripening shelves
      Milk = Raw Milk / Milch
      Butter = Churned Cream / Butter
      Cheese = Curd Rounds; Truckles / Käse
    Bread and Bakery = Baked Goods / Backwaren
      ~ village field: leaven, oven peels, crust, dough rise, baking days, batch loaves
      Bread = Loaves / Brot
      Flour = Meal; Ground Grain / Mehl
      Malt = Sprouted Barley / Malz
    Meat = Flesh Foods / Fleisch
      ~ stock village: smoking lofts, salting tubs, carcass weight, hung joints, autumn killing
      Ham = Cured Pork; Gammon / Schinken
      Sausages = Links; Puddings, Savoury / Würste
    Eggs = Ova; Hen Fruit / Eier
    Honey = Mel; Bee Sweet / Honig
    Preserves = Conserves; Jams / Eingemachtes
    Dried Fruit = Fruit Leather / Trockenobst
    Smoked Fish = Kippers; Bloaters / Räucherfisch
    Pickled Vegetables = Sour Pickles / Sauergemüse
    Sea Salt = Bay Salt / Meersalz
  Beverages = Drinks / Getränke
    ~ village orchard: fermentation, pressing days, casks, alcohol content, cellar notes, tastings
    Cider = Apple Wine / Apfelwein
    Perry = Pear Wine / Birnenwein
    Beer = Ale / Bier
    Wine = Vinum / Wein
    Mead = Honey Wine; Metheglin / Met
    Fruit Juices = Pressed Juice / Fruchtsäfte
    Herb Teas = Tisanes / Kräutertees
  Materials = Raw Materials / Rohstoffe
    ~ village forest: bundles, spinning, seasoning, dye baths, workshop benches, grading
    Wool = Fleeces; Lana / Wolle
    Linen = Flax Cloth / Leinen
    Leather = Tanned Hides / Leder
    Timber = Lumber; Sawn Wood / Bauholz
    Firewood = Fuel Wood; Logs / Brennholz
    Thatch = Straw Roofing / Reetdächer
    Peat Fuel = Turf; Turves / Brenntorf
    Straw = Haulm; Halm / Stroh
    Hay = Dried Grass / Heu
    Silage = Pit Fodder / Silage
    Beeswax = Cera alba / Bienenwachs
    Natural Dyes = Plant Colours / Naturfarben
    Wicker = Basketry Rods / Flechtwerk
  Trade = Commerce; Dealing / Handel
    ~ village field: price lists, tolls, carriers, weighhouse notes, seasonal demand, bargains
    Produce Trade = Trade in Produce / Produktenhandel
    Markets = Fairs; Market Places / Märkte
    Prices = Price Levels; Going Rates / Preise
    Farm Shops = Direct Selling / Hofläden
    Exports = Foreign Sales / Ausfuhr
    Cooperatives = Mutual Societies; Co-Ops / Genossenschaften
    Rural Credit = Village Banks; Loans to Farmers / Agrarkredit
    Food Labels = Origin Marks; PDO / Lebensmittelkennzeichnung
    Transport = Carriage; Haulage / Transport
    Ferries = Ferry Boats; Passage Boats / Fähren < Boats
  Farm Economy = Farm Business; Farm Accounts / Betriebswirtschaft
    ~ field stock: gross margins, ledgers, rents, bank visits, hired help, break-even years
    Farm Income = Farm Earnings / Betriebseinkommen
    Farm Size = Acreage / Betriebsgröße
    Farm Labour = Farm Work Force; Field Hands / Landarbeit
    Crop Yields = Yields; Outturn / Ernteerträge
    Subsidies = Farm Payments; Grants / Subventionen
    Insurance = Crop Cover; Indemnities / Versicherung
    Smallholdings = Crofts; Small Farms / Kleinbetriebe
    Estates = Demesnes; Manors / Gutshöfe
    Farm Succession = Handing On; Inheritance of Farms / Hofnachfolge
  Land Tenure = Land Holding; Property in Land / Grundbesitz
    ~ village field: leases, hedged plots, court rolls, boundary walks, rent days, tithe maps
    Commons = Common Land; Allmende / Allmenden
    Enclosure = Inclosure / Einhegung
    Tenancy = Leaseholds / Pacht
    Water Rights = Riparian Rights / Wasserrechte
    Fishing Rights = Piscary / Fischereirechte
    Land Consolidation = Strip Merging; Regrouping / Flurbereinigung
  People = Persons; Country Folk / Menschen
    ~ village: life stories, family ties, apprentices, daily round, kitchen talk, photographs
    Farmers = Husbandmen; Yeomen / Landwirte
    Gardeners = Garden Staff / Gärtner
    Fishers = Fisherfolk; Fishermen / Fischer
    Shepherds = Flock Keepers; Herds / Schäfer
    Millers = Mill Keepers / Müller
    Foresters = Woodmen; Woodwards / Förster
    Beekeepers = Apiarists / Imker
    Dyke Wardens = Dyke Reeves / Deichgrafen
    Lock Keepers = Sluice Men / Schleusenwärter
    Women Farmers = Farm Women / Bäuerinnen
    Young Farmers = Farm Youth / Junglandwirte
    Seasonal Workers = Migrant Pickers; Harvest Gangs / Saisonarbeiter
    Volunteers = Helpers, Unpaid / Freiwillige
    Children = Youngsters / Kinder
  Rural Society = Village Society / Ländliche Gesellschaft
    ~ village: parish meetings, chapel records, school logs, carting days, dialect words
    Villages = Hamlets; Townships / Dörfer
    Rural Schools = Village Schools / Landschulen
    Farm Advice = Extension Services; Advisory Work / Agrarberatung
    Rural Women's Institutes = RWI; Country Women's Guilds
    Folk Customs = Traditions; Old Ways / Bräuche
      Harvest Festivals = Harvest Homes; Kirns / Erntedankfeste
    Folk Medicine = Cottage Remedies / Volksmedizin
    Rural Depopulation = Flight from Land / Landflucht
    Country Tourism = Farm Holidays; Agritourism / Landtourismus
    Place Names = Toponyms / Ortsnamen
    Garden Clubs = Horticultural Societies / Gartenbauvereine
    Horticultural Shows = Flower Shows; Produce Shows / Gartenschauen
  Law and Governance = Rules and Offices / Recht und Verwaltung
    ~ village river: statutes, petitions, hearings, fines, board minutes, inspectors
    Water Boards = Drainage Boards; Water Courts / Wasserverbände
    Fishery Laws = Close Seasons; Fish Statutes / Fischereirecht
    Conservation Policy = Nature Policy / Naturschutzpolitik
    Land Use Planning = Spatial Planning; Zoning / Raumplanung
    Agricultural Policy = Farm Policy / Agrarpolitik
    Animal Welfare = Humane Keeping / Tierschutz
    Food Safety = Hygiene of Food / Lebensmittelsicherheit
    Flood Insurance Pools -> Insurance
"""
