-- Machines, their repairs and who may use them; people are called members by the columns that refer to them alone.
CREATE TABLE enrolled (id INTEGER PRIMARY KEY, name TEXT, level INTEGER);
CREATE TABLE mentoring (member_id INTEGER REFERENCES enrolled (id), hours INTEGER);
CREATE TABLE machines_data (machine_id INTEGER PRIMARY KEY, rpm INTEGER, weight INTEGER, year INTEGER);
CREATE TABLE machine_parts (part_id INTEGER PRIMARY KEY, label TEXT, machine_id INTEGER REFERENCES machines_data (machine_id));
CREATE TABLE repairs (repair_id INTEGER PRIMARY KEY, machine_id INTEGER REFERENCES machines_data (machine_id),
    date_of_repair TEXT, cost_of_repair REAL);
CREATE TABLE contacts (contact_id INTEGER PRIMARY KEY, first_name TEXT, middle_name TEXT, last_name TEXT, region TEXT,
    cell_number TEXT, date_arrived TEXT, date_departed TEXT, line_1 TEXT, line_2 TEXT);
INSERT INTO enrolled VALUES (1, 'Ada', 3), (2, 'Bo', 5), (3, 'Cy', 8), (4, 'Di', 5), (5, 'Ed', 3), (6, 'Flo', 5);
INSERT INTO mentoring VALUES (1, 4), (1, 6), (2, 3), (3, 9), (3, 1), (3, 2);
INSERT INTO machines_data VALUES (1, 1200, 340, 1995), (2, 900, 120, 2003), (3, 3000, 260, 1988), (4, 700, 480, 2003);
INSERT INTO machine_parts VALUES (1, 'belt', 1), (2, 'belt', 3), (3, 'drum', 3), (4, 'fan', 3);
INSERT INTO repairs VALUES (1, 1, '2020-03-01', 80.5), (2, 3, '2021-07-19', 40.0), (3, 3, '2019-01-05', 230.0), (4, 4, '2018-02-11', 12.0);
INSERT INTO contacts VALUES
    (1, 'Ines', 'Maria', 'Pardo', 'North Moor', '555-1', '2021-02-01', '2021-05-01', 'Mill 3', 'Leeds'),
    (2, 'Karl', 'Otto', 'Behn', 'South Quay', '555-2', '2020-02-11', '2022-05-01', 'Quay 9', 'Hull'),
    (3, 'Lena', 'Sue', 'Noor', 'North Quay', '555-3', '2019-08-21', '2020-05-01', 'Pier 1', 'York');
