-- A help desk of our own making: who owns what, what they asked before, and what they were told.
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, joined TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, about TEXT);
CREATE TABLE owned (
  customer_id INTEGER REFERENCES customers(id), product_id INTEGER REFERENCES products(id),
  PRIMARY KEY (customer_id, product_id)
);
CREATE TABLE tickets (
  id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), opened TEXT, title TEXT, status TEXT
);
CREATE TABLE replies (id INTEGER PRIMARY KEY, ticket_id INTEGER REFERENCES tickets(id), sent TEXT, text TEXT);

INSERT INTO customers VALUES
  (1, 'Ada Brook', 'Leeds', '2022-03-01'), (2, 'Ben Okoro', 'Bristol', '2023-06-15'),
  (3, 'Chloe Marsh', 'York', '2021-11-20'), (4, 'Dev Patel', 'Cardiff', '2023-01-09');
INSERT INTO products VALUES
  (1, 'Kettle K2', 'Electric kettle of 1.7 litres with a lime filter.'),
  (2, 'Bicycle lamp L7', 'Front light for a bicycle, charged by USB.'),
  (3, 'Cordless drill D5', 'Drill with two speeds and an 18 volt battery.'),
  (4, 'Wireless router R9', 'Router for a home network, with two aerials.');
INSERT INTO owned VALUES (1, 1), (2, 2), (3, 3), (4, 4);
INSERT INTO tickets VALUES
  (11, 1, '2024-01-10T09:30:00', 'Where can I buy another lime filter for boiling water?', 'closed'),
  (12, 2, '2024-01-21T18:05:00', 'Which cable charges the light of my bike?', 'closed'),
  (13, 3, '2024-02-02T11:45:00', 'The chuck does not hold thin bits for wood', 'closed'),
  (14, 4, '2024-02-14T20:10:00', 'My wireless network is slow upstairs', 'closed'),
  (21, 1, '2024-03-05T08:15:00', 'It does not switch on any more. What can I do?', 'open'),
  (22, 2, '2024-03-05T19:40:00', 'It does not switch on any more. What can I do?', 'open'),
  (23, 3, '2024-03-06T10:00:00', 'What does the red light mean?', 'open'),
  (24, 4, '2024-03-06T10:20:00', 'What does the red light mean?', 'open');
INSERT INTO replies VALUES
  (1, 11, '2024-01-11T10:00:00', 'Filters are sold in packs of three by every shop that has the kettle.'),
  (2, 12, '2024-01-22T09:00:00', 'Any cable for a telephone with USB-C will do.'),
  (3, 21, '2024-03-06T09:00:00', 'Written after the question, and so never a part of its context.');
