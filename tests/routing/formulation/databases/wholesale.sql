CREATE TABLE depots (depot_id INTEGER PRIMARY KEY, depot_name VARCHAR(20), town VARCHAR(20));
INSERT INTO depots VALUES (1, 'North', 'Leith'), (2, 'South', 'Hove'), (3, 'West', 'Truro');
CREATE TABLE clients (client_id INTEGER PRIMARY KEY, client_name VARCHAR(20), joined_on DATE, home_depot_id INTEGER REFERENCES depots(depot_id), spare_depot_id INTEGER REFERENCES depots(depot_id));
INSERT INTO clients VALUES (1, 'Ash', '2021-03-01', 1, 2), (2, 'Birch', '2021-09-12', 1, 1), (3, 'Cedar', '2022-01-20', 3, 2), (4, 'Dogwood', '2023-05-05', 2, 3);
CREATE TABLE articles (article_id INTEGER PRIMARY KEY, article_name VARCHAR(20), range_name VARCHAR(20), stock INTEGER, reorder_level INTEGER, weight_kg DECIMAL(5,2));
INSERT INTO articles VALUES (1, 'hinge', 'doors', 40, 50, 0.2), (2, 'latch', 'doors', 90, 30, 0.4), (3, 'bolt', 'fixings', 400, 200, 0.1), (4, 'anchor', 'fixings', 20, 60, 0.9), (5, 'bracket', 'fixings', 75, 75, 0.6);
CREATE TABLE invoices (invoice_id INTEGER PRIMARY KEY, client_id INTEGER REFERENCES clients(client_id), article_id INTEGER REFERENCES articles(article_id), quantity INTEGER, unit_price DECIMAL(6,2), issued_on DATE, paid_on DATE, disputed BOOLEAN);
INSERT INTO invoices VALUES (1, 1, 1, 10, 2.00, '2023-01-05', '2023-02-01', 0), (2, 1, 4, 3, 30.00, '2023-02-11', NULL, 1), (3, 2, 3, 100, 0.50, '2023-02-20', '2023-03-02', 0), (4, 3, 2, 8, 6.00, '2024-01-15', NULL, 0), (5, 3, 4, 2, 32.00, '2024-03-03', '2024-03-30', 0), (6, 4, 5, 20, 4.00, '2024-03-09', NULL, 1), (7, 4, 1, 5, 2.10, '2024-04-01', '2024-04-20', 0);
