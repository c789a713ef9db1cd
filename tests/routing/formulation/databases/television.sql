CREATE TABLE Channel (id INTEGER PRIMARY KEY, series_name TEXT, Country TEXT, Language TEXT, Package_Option TEXT, Share_Percent REAL);
CREATE TABLE Show_Episode (id INTEGER PRIMARY KEY, Title TEXT, Air_Date TEXT, Rating REAL, Viewers_m REAL, Channel_ID INTEGER, FOREIGN KEY (Channel_ID) REFERENCES Channel(id));
CREATE TABLE Cartoon (id INTEGER PRIMARY KEY, Title TEXT, Directed_by TEXT, Written_by TEXT, Production_code REAL, Channel INTEGER, FOREIGN KEY (Channel) REFERENCES Channel(id));
INSERT INTO Channel VALUES (1,'Sky Uno','Italy','Italian','Basic',3.5),(2,'Nick','USA','English','Premium',7.1),(3,'Arte','France','French','Basic',1.2),(4,'Rai','Italy','Italian','Premium',9.9),(5,'Muzzik','Italy','Italian','None',0.4);
INSERT INTO Show_Episode VALUES (1,'Pilot','2009-02-03',5.8,9.2,1),(2,'Emily','2009-02-10',4.2,6.1,1),(3,'Keith','2009-03-01',5.1,8.0,2),(4,'Camille','2010-01-01',6.6,12.5,4);
INSERT INTO Cartoon VALUES (1,'Rise','Ben Jones','Mike Ryan',179.03,2),(2,'Fall','Brandon Vietti','Adam Beechen',176.05,2),(3,'Dive','Ben Jones','Todd Casey',178.0,4),(4,'Jump','Ben Jones','Mike Ryan',170.1,3);
