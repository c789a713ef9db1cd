CREATE TABLE airline (airline_id INTEGER PRIMARY KEY, airline_name TEXT, country TEXT, founded INTEGER, fleet_size INTEGER);
CREATE TABLE airport (iata_code TEXT PRIMARY KEY, airport_name TEXT, city TEXT, elevation_ft INTEGER);
CREATE TABLE flight (
  flight_no INTEGER PRIMARY KEY, airline_id INTEGER, origin TEXT, distance_km INTEGER, ticket_price REAL,
  departure_date TEXT,
  FOREIGN KEY (airline_id) REFERENCES airline (airline_id), FOREIGN KEY (origin) REFERENCES airport (iata_code)
);
INSERT INTO airline VALUES (1,'Blue Wings','Norway',1987,40),(2,'Sun Air','Spain',2001,25),(3,'Polar Jet','Norway',1995,12),(6,'Fjord Air','Norway',1999,7),
 (4,'Andes Fly','Chile',1960,60),(5,'Tiny Hops','Spain',2015,3);
INSERT INTO airport VALUES ('OSL','Gardermoen','Oslo',681),('MAD','Barajas','Madrid',1998),('SCL','Benitez','Santiago',1555),
 ('BGO','Flesland','Bergen',170),('AGP','Costa del Sol','Malaga',53);
INSERT INTO flight VALUES (10,1,'OSL',2400,120.5,'2021-03-04'),(11,1,'BGO',300,60,'2021-05-01'),(12,2,'MAD',520,75,'2020-12-24'),
 (13,2,'AGP',2900,210,'2021-07-15'),(14,3,'OSL',1450,99,'2022-01-02'),(15,4,'SCL',11000,900,'2021-11-30'),
 (16,1,'OSL',2400,150,'2022-02-14'),(17,2,'MAD',5800,480,'2021-03-04');
