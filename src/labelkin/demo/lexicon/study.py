"""Headings of category H: how things are studied and written down; the check tags are here."""

from __future__ import annotations

OUTLINE = """
Study and Record = Research Methods; Inquiry / Forschung und Aufzeichnung
  ~ any: working papers, sample size, protocols, data sheets, reviewers' remarks
  Study Kinds = Study Types; Designs of Inquiry / Studienarten
    ~ any: study plans, sample size, control plots, replicates, research questions
    Field Studies = On-Site Studies; Outdoor Studies / Feldstudien
      ~ any: muddy boots, marked plots, site visits, weatherproof notebooks, walked transects
      Field Trials = Plot Trials / Feldversuche
      Long-Term Studies = Multi-Year Studies; LTS / Langzeitstudien
      Pilot Studies = Trial Runs / Vorstudien
    Laboratory Studies = Bench Studies / Laborstudien
      ~ any: glassware, incubators, balance readings, microscope slides, sealed vessels
      Greenhouse Trials = Pot Experiments / Gewächshausversuche
    Comparative Studies = Side-by-Side Studies; Comparisons / Vergleichsstudien
      ~ any: paired sites, contrasts between groups, matched samples
      ~ differences of means, reference plots
    Case Studies = Single-Site Studies / Fallstudien
    Historical Studies = Studies of History; Retrospects / Historische Studien
      ~ any: parish chests, faded ink, old ledgers, letters, engraved maps
    Reviews = Literature Surveys; Overviews / Übersichtsarbeiten
    Controlled Experiments = Randomised Trials; RCT / Kontrollierte Experimente
    Guidelines = Good Practice Codes; Rule Books / Leitlinien
  Data Collection = Gathering of Data / Datenerhebung
    ~ any: data sheets, sampling points, tally marks, field books, daily rounds
    Surveys = Censuses; Stock-Takings / Erhebungen
      ~ any: tally sheets, postal forms, response rates, enumerators, district totals
    Interviews = Oral Accounts / Interviews
      ~ village: tape recordings, kitchen tables, transcripts, open questions, elder voices
    Questionnaires = Question Sheets; Postal Inquiries / Fragebögen
    Oral History = Spoken Memory / Oral History
    Sampling = Sample Taking / Probenahme
    Monitoring = Long Watch; Surveillance / Monitoring
    Citizen Science = Lay Recording; CS / Bürgerwissenschaft
    Bird Ringing = Banding / Vogelberingung
    Phenology = Nature's Calendar / Phänologie
    Soil Analysis = Soil Testing / Bodenanalyse
    Water Analysis = Water Testing / Wasseranalyse
    Pollen Analysis = Palynology / Pollenanalyse < Historical Studies
    Tree-Ring Dating = Dendrochronology / Jahrringdatierung < Historical Studies
    Tagging = Marking of Animals; Telemetry / Markierung
    Catch Records = Landing Books / Fangstatistik
  Maps and Remote Sensing = Surveying; Charting / Karten und Fernerkundung
    ~ any: scale bars, flight lines, ground control points, folded sheets, pixel classes
    Maps = Charts; Map Sheets / Karten
    Aerial Photographs = Air Photos / Luftbilder
    Satellite Images = Space Pictures / Satellitenbilder
    Geographic Information Systems = GIS / Geoinformationssysteme
    Weather Stations = Met Posts; AWS / Wetterstationen
  Analysis and Models = Numerical Methods / Analyse und Modelle
    ~ any: residual plots, confidence bands, parameter sets, calibration runs, scenario tables
    Statistics = Numerical Analysis; Biometry / Statistik
    Simulation Models = Computer Models / Simulationsmodelle
    Forecasting = Prediction / Vorhersage
    Risk Assessment = Hazard Rating; RA / Risikobewertung
    Cost-Benefit Analysis = Economic Appraisal; CBA / Kosten-Nutzen-Analyse
    Life Cycle Assessment = Ecobalances; LCA / Ökobilanz
    Genetic Markers = DNA Marks; Gene Tags / Genetische Marker
    Time Series = Chronological Data; Data Series / Zeitreihen
  Records = Documents; Written Sources / Aufzeichnungen
    ~ village: shelf marks, handwriting, bound volumes, copied entries, dated pages
    Diaries = Journals, Private; Day Books / Tagebücher
    Herbaria = Dried Plant Collections / Herbarien
    Parish Registers = Church Books / Kirchenbücher
    Farm Ledgers = Account Rolls / Wirtschaftsbücher
    Travel Accounts = Journeys, Printed; Itineraries / Reiseberichte
    Herbals, Printed = Plant Books / Kräuterbücher
    Lantern Slide Sets -> Aerial Photographs
"""
