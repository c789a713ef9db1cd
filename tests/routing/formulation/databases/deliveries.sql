CREATE TABLE shops (shop_id INTEGER PRIMARY KEY, shop_name VARCHAR(20), town VARCHAR(20), opened VARCHAR(10));
INSERT INTO shops VALUES (1, 'Corner', 'Ryde', '17.03.2011'), (2, 'Harbour', 'Cowes', '02.11.2018'), (3, 'Mill', 'Ryde', '25.06.2020');
CREATE TABLE deliveries (delivery_id INTEGER PRIMARY KEY, shop_id INTEGER REFERENCES shops(shop_id), delivered_on VARCHAR(10), billed_on INTEGER, crates INTEGER, price DECIMAL(7,2));
INSERT INTO deliveries VALUES (1, 1, '28/12/2023', 20240105, 12, 80.50), (2, 2, '03/01/2024', 20240131, 4, 31.00), (3, 1, '15/02/2024', 20240301, 7, 49.00), (4, 3, '09/03/2024', 20240315, 20, 130.00), (5, 2, '30/03/2024', 20240411, 9, 66.00), (6, 3, '11/05/2024', 20240602, 15, 99.90), (7, 1, '01/06/2024', 20240620, 3, 22.00);
