CREATE TABLE club (Club_ID INT PRIMARY KEY, Name TEXT, Manager TEXT, Captain TEXT, Stadium_Capacity INT, Region TEXT);
CREATE TABLE player (Player_ID INT PRIMARY KEY, Name TEXT, Country TEXT, Wage REAL, Position TEXT, Club_ID INT REFERENCES club(Club_ID), Birth_Year INT);
CREATE TABLE game (Game_ID INT PRIMARY KEY, Season INT, Home_Club_ID INT REFERENCES club(Club_ID), Attendance INT, Goals INT);
INSERT INTO club VALUES (1,'Rovers','Ann Ito','Bo',30000,'North'),(2,'United','Cy Vega','Di',52000,'North'),(3,'Albion','Ed Poe','Flo',11000,'South'),(4,'Wanderers','Gus Orr','Hal',8000,'East');
INSERT INTO player VALUES (1,'Ivo','Brazil',500,'Forward',1,1990),(2,'Jed','England',300,'Keeper',1,1985),(3,'Kai','Brazil',900,'Forward',2,1999),(4,'Leo','Japan',450,'Midfielder',2,2001),(5,'Max','England',150,'Keeper',3,2003);
INSERT INTO game VALUES (1,2019,1,25000,3),(2,2019,2,50000,1),(3,2020,1,28000,4),(4,2020,3,9000,0),(5,2021,2,41000,2);
