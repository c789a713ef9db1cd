CREATE TABLE club (club_id INTEGER PRIMARY KEY, club_name TEXT, city TEXT, has_jetty INTEGER, capacity INTEGER, founded INTEGER, berths INTEGER);
CREATE TABLE trainer (trainer_id INTEGER PRIMARY KEY, full_name TEXT, trainer_rank TEXT, salary INTEGER, club_id INTEGER REFERENCES club(club_id), office_no TEXT);
CREATE TABLE sailor (
  sailor_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, birth_date TEXT, height_cm INTEGER, nat_team TEXT,
  trainer_id INTEGER REFERENCES trainer(trainer_id)
);
CREATE TABLE race (
  race_id INTEGER PRIMARY KEY, title TEXT, race_date TEXT, offshore_yn TEXT, indoor INTEGER, days INTEGER, fee INTEGER,
  judge_no INTEGER REFERENCES sailor(sailor_id)
);
CREATE TABLE race_entry (
  sailor_id INTEGER REFERENCES sailor(sailor_id), race_id INTEGER REFERENCES race(race_id), paid TEXT, points INTEGER,
  PRIMARY KEY (sailor_id, race_id)
);
INSERT INTO club VALUES (1,'Harbour Club','Oslo',1,40,1901,30),(2,'Lake Club','Bergen',0,20,1950,12),(3,'Fjord Club','Oslo',1,60,1932,44);
INSERT INTO trainer VALUES (1,'Ada Moe','Head',900,1,'12'),(2,'Bo Lie','Junior',500,1,NULL),(3,'Cy Dahl','Head',700,2,'3'),(4,'Di Vik','Junior',800,3,NULL);
INSERT INTO sailor VALUES (1,'Eva','Berg','1999-02-01',181,'Y',1),(2,'Eva','Holm','2003-05-11',170,'N',1),(3,'Finn','Strand','1995-07-21',190,'Y',NULL),
 (4,'Gry','Lund','2001-01-09',165,'N',3),(5,'Hans','Eide','1990-10-02',178,'N',4);
INSERT INTO race VALUES (1,'Spring Cup','2024-04-02','N',0,2,40,5),(2,'Long Passage','2024-06-11','Y',0,6,90,4),(3,'Hall Slalom','2024-02-20','N',1,1,25,3),(4,'Island Round','2023-08-15','Y',0,5,70,5);
INSERT INTO race_entry VALUES (1,1,'Y',10),(1,2,'N',30),(2,1,'Y',20),(2,4,'Y',5),(3,2,'Y',35),(3,3,'N',15),(4,3,'Y',35);
