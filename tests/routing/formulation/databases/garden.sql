CREATE TABLE gardeners (gardener_id INTEGER PRIMARY KEY, gardener_name TEXT, village TEXT, joined_on TEXT, licensed TEXT, monthly_pay INTEGER);
CREATE TABLE plots (plot_id INTEGER PRIMARY KEY, gardener_id INTEGER REFERENCES gardeners (gardener_id), plot_name TEXT, area_m2 INTEGER, soil_grade TEXT, opened INTEGER, trees INTEGER);
CREATE TABLE ref_method (method_code TEXT PRIMARY KEY, method_description TEXT);
CREATE TABLE sales (sale_id INTEGER PRIMARY KEY, plot_id INTEGER REFERENCES plots (plot_id), method_code TEXT REFERENCES ref_method (method_code), crop TEXT, sold_on TEXT, baskets_sold INTEGER, stage TEXT);
CREATE TABLE gifts (gift_id INTEGER PRIMARY KEY, gardener_id INTEGER REFERENCES gardeners (gardener_id), amount REAL);
INSERT INTO gardeners VALUES (1, 'Ana Ruiz', 'Elm', '2019-03-04', 'yes', 2100), (2, 'Bo Lind', 'Oakley', '2021-07-15', 'no', 2600),
  (3, 'Cy Marsh', 'Elm', '2022-05-01', 'no', 1900), (4, 'Di Frost', 'Ashby', NULL, 'yes', 3000);
INSERT INTO plots VALUES (1, 1, 'North Bed', 120, 'A+', 1990, 4), (2, 1, 'Long Bed', 300, 'A-', 2003, 0), (3, 2, 'Corner', 80, 'A+', 1985, 2),
  (4, 3, 'Hillside', 210, 'B', 1998, 0), (5, 4, 'Orchard', 450, 'A-', 2010, 30);
INSERT INTO ref_method VALUES ('C', 'Cash'), ('T', 'Transfer'), ('V', 'Voucher');
INSERT INTO sales VALUES (1, 1, 'C', 'beans', '2022-06-03', 10, 'in transit'), (2, 1, 'T', 'kale', '2022-07-09', 4, 'delivered'),
  (3, 2, 'C', 'beans', '2023-07-21', 12, 'delivered'), (4, 3, 'C', 'leeks', '2023-07-30', 30, 'in transit'),
  (5, 4, 'T', 'kale', '2023-09-05', 9, 'delivered'), (6, 4, 'C', 'leeks', '2022-10-11', 7, 'delivered'), (7, 1, 'C', 'beans', '2023-07-02', 5, 'delivered');
INSERT INTO gifts VALUES (1, 1, 40.0), (2, 2, 15.5), (3, 2, 70.0), (4, 4, 90.0);
