CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
CREATE TABLE invoice (
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer (id), issued TEXT NOT NULL, total REAL NOT NULL
);
INSERT INTO customer VALUES (1, 'Anna Berg', 'Norway'), (2, 'Jon Vik', 'Norway'), (3, 'Mia Roth', 'Austria');
INSERT INTO invoice VALUES
  (1, 1, '2026-01-12', 80.0), (2, 1, '2026-03-02', 120.5), (3, 2, '2026-03-09', 45.9), (4, 3, '2026-04-21', 310.0);
