CREATE TABLE members (member_id INTEGER PRIMARY KEY, full_name VARCHAR(20), town VARCHAR(20), left_on DATE, can_drive VARCHAR(1));
INSERT INTO members VALUES (1, 'Ana Ruiz', 'Lewes', NULL, 'Y'), (2, 'Tom Pike', 'Hove', '2023-05-01', 'N'), (3, 'Joy Bell', 'Hove', NULL, 'Y');
CREATE TABLE shows (show_id INTEGER PRIMARY KEY, title VARCHAR(30), kind VARCHAR(20), first_night DATE);
INSERT INTO shows VALUES (1, 'The Lamp', 'panto', '2023-12-02'), (2, 'Low Tide', 'drama', '2024-05-10'), (3, 'Old Bells', 'panto', '2024-12-05');
CREATE TABLE expenses (expense_id INTEGER PRIMARY KEY, show_id INTEGER REFERENCES shows(show_id), paid_by INTEGER REFERENCES members(member_id), category VARCHAR(20), amount DECIMAL(8,2), spent_on DATE);
INSERT INTO expenses VALUES (1, 1, 1, 'Paint', 40, '2023-11-01'), (2, 2, 1, 'Paint', 55.5, '2024-04-12'), (3, 2, 3, 'Fuel', 20, '2024-05-11'), (4, 3, 1, 'Fuel', 31, '2024-11-30'), (5, 3, 2, 'Costumes', 210, '2024-10-02');
CREATE TABLE income (income_id INTEGER PRIMARY KEY, show_id INTEGER REFERENCES shows(show_id), source VARCHAR(20), amount DECIMAL(8,2), received_on DATE);
INSERT INTO income VALUES (1, 1, 'Raffle', 88, '2023-12-02'), (2, 1, 'Tickets', 940, '2023-12-09'), (3, 2, 'Raffle', 61, '2024-05-10'), (4, 2, 'Tickets', 700, '2024-05-17'), (5, 3, 'Raffle', 102.5, '2024-12-05');
