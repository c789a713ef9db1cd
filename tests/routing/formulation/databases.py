"""Small databases of several domains, and questions over them with the SQL that answers them."""

AIR = """
CREATE TABLE airline (airline_id INTEGER PRIMARY KEY, airline_name TEXT, country TEXT, founded INTEGER, fleet_size INTEGER);
CREATE TABLE airport (iata_code TEXT PRIMARY KEY, airport_name TEXT, city TEXT, elevation_ft INTEGER);
CREATE TABLE flight (
  flight_no INTEGER PRIMARY KEY, airline_id INTEGER, origin TEXT, distance_km INTEGER, ticket_price REAL,
  departure_date TEXT,
  FOREIGN KEY (airline_id) REFERENCES airline (airline_id), FOREIGN KEY (origin) REFERENCES airport (iata_code)
);
INSERT INTO airline VALUES (1,'Blue Wings','Norway',1987,40),(2,'Sun Air','Spain',2001,25),(3,'Polar Jet','Norway',1995,12),(6,'Fjord Air','Norway',1999,7),
 (4,'Andes Fly','Chile',1960,60),(5,'Tiny Hops','Spain',2015,3);
INSERT INTO airport VALUES ('OSL','Gardermoen','Oslo',681),('MAD','Barajas','Madrid',1998),('SCL','Benitez','Santiago',1555),
 ('BGO','Flesland','Bergen',170),('AGP','Costa del Sol','Malaga',53);
INSERT INTO flight VALUES (10,1,'OSL',2400,120.5,'2021-03-04'),(11,1,'BGO',300,60,'2021-05-01'),(12,2,'MAD',520,75,'2020-12-24'),
 (13,2,'AGP',2900,210,'2021-07-15'),(14,3,'OSL',1450,99,'2022-01-02'),(15,4,'SCL',11000,900,'2021-11-30'),
 (16,1,'OSL',2400,150,'2022-02-14'),(17,2,'MAD',5800,480,'2021-03-04');
"""
AIR_QUESTIONS = [
    ("How many airlines are there?", "SELECT count(*) FROM airline"),
    ("What is the total number of flights?", "SELECT count(*) FROM flight"),
    ("List the names of all airports in Oslo.", "SELECT airport_name FROM airport WHERE city = 'Oslo'"),
    ("Which airlines are from Norway?", "SELECT airline_name FROM airline WHERE country = 'Norway'"),
    ("Show the name and the country of every airline founded after 1990.",
     "SELECT airline_name, country FROM airline WHERE founded > 1990"),
    ("What is the average ticket price of flights longer than 2000 km?",
     "SELECT avg(ticket_price) FROM flight WHERE distance_km > 2000"),
    ("What are the average, minimum and maximum prices of tickets?",
     "SELECT avg(ticket_price), min(ticket_price), max(ticket_price) FROM flight"),
    ("Find the airline with the largest fleet size.", "SELECT airline_name FROM airline ORDER BY fleet_size DESC LIMIT 1"),
    ("What is the name of the airline with the most flights?",
     "SELECT a.airline_name FROM airline a JOIN flight f USING (airline_id) GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"),
    ("How many flights does each airline have?",
     "SELECT a.airline_name, count(*) FROM airline a JOIN flight f USING (airline_id) GROUP BY a.airline_id"),
    ("Which airlines have more than 2 flights?",
     "SELECT a.airline_name FROM airline a JOIN flight f USING (airline_id) GROUP BY 1 HAVING count(*) > 2"),
    ("Which airlines have no flights?",
     "SELECT airline_name FROM airline WHERE airline_id NOT IN (SELECT airline_id FROM flight)"),
    ("How many airlines do not have any flight?",
     "SELECT count(*) FROM airline WHERE airline_id NOT IN (SELECT airline_id FROM flight)"),
    ("What are the names of airports that lie higher than 1000 feet of elevation?",
     "SELECT airport_name FROM airport WHERE elevation_ft > 1000"),
    ("List the cities of airports ordered by elevation from highest to lowest.",
     "SELECT city FROM airport ORDER BY elevation_ft DESC"),
    ("How many different countries do airlines come from?", "SELECT count(DISTINCT country) FROM airline"),
    ("For each country, how many airlines are there?", "SELECT country, count(*) FROM airline GROUP BY country"),
    ("Which country has the most airlines?",
     "SELECT country FROM airline GROUP BY country ORDER BY count(*) DESC LIMIT 1"),
    ("What are the flight numbers of flights by Sun Air?",
     "SELECT f.flight_no FROM flight f JOIN airline a USING (airline_id) WHERE a.airline_name = 'Sun Air'"),
    ("Give the distance of the most expensive flight.", "SELECT distance_km FROM flight ORDER BY ticket_price DESC LIMIT 1"),
    ("Find the average distance of flights for each airline name.",
     "SELECT a.airline_name, avg(f.distance_km) FROM airline a JOIN flight f USING (airline_id) GROUP BY 1"),
    ("How many flights leave from airports in Madrid?",
     "SELECT count(*) FROM flight f JOIN airport p ON f.origin = p.iata_code WHERE p.city = 'Madrid'"),
    ("What are the names of airlines that are not from Spain?", "SELECT airline_name FROM airline WHERE country != 'Spain'"),
    ("Show the flight numbers with a ticket price between 70 and 150.",
     "SELECT flight_no FROM flight WHERE ticket_price BETWEEN 70 AND 150"),
    ("Show the names of the three airlines with the smallest fleet size.",
     "SELECT airline_name FROM airline ORDER BY fleet_size LIMIT 3"),
    ("Which airline names contain the word 'Air'?", "SELECT airline_name FROM airline WHERE airline_name LIKE '%Air%'"),
    ("Return airline names that start with 'P'.", "SELECT airline_name FROM airline WHERE airline_name LIKE 'P%'"),
    ("What are the countries with at least two airlines?",
     "SELECT country FROM airline GROUP BY country HAVING count(*) >= 2"),
    ("What is the total distance of all flights of airlines from Norway?",
     "SELECT sum(f.distance_km) FROM flight f JOIN airline a USING (airline_id) WHERE a.country = 'Norway'"),
    ("Which flights cost more than the average ticket price? List their numbers.",
     "SELECT flight_no FROM flight WHERE ticket_price > (SELECT avg(ticket_price) FROM flight)"),
    ("List the airlines founded before 1990 or after 2010.",
     "SELECT airline_name FROM airline WHERE founded < 1990 OR founded > 2010"),
    ("When was Andes Fly founded?", "SELECT founded FROM airline WHERE airline_name = 'Andes Fly'"),
    ("What is the oldest airline?", "SELECT airline_name FROM airline ORDER BY founded LIMIT 1"),
]  # fmt: skip

FIRM = """
CREATE TABLE departments (dept_id INTEGER PRIMARY KEY, dept_name TEXT, budget REAL, floor INTEGER);
CREATE TABLE employees (
  emp_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, age INTEGER, salary REAL, job_title TEXT, hire_date DATE,
  dept_id INTEGER REFERENCES departments (dept_id), gender TEXT
);
CREATE TABLE projects (project_id INTEGER PRIMARY KEY, title TEXT, start_year INTEGER, status TEXT);
CREATE TABLE assignments (
  emp_id INTEGER REFERENCES employees (emp_id), project_id INTEGER REFERENCES projects (project_id), hours INTEGER,
  PRIMARY KEY (emp_id, project_id)
);
INSERT INTO departments VALUES (1,'Research',500000,3),(2,'Sales',200000,1),(3,'Legal',90000,2),(4,'Archive',10000,0);
INSERT INTO employees VALUES (1,'Ada','Stone',34,7200,'engineer','2015-04-01',1,'F'),(2,'Ben','Reyes',51,5100,'salesman','2009-10-12',2,'M'),
 (3,'Cleo','Marsh',28,4300,'salesman','2019-01-07',2,'F'),(4,'Dan','Stone',45,8800,'lawyer','2012-06-30',3,'M'),
 (5,'Eve','Okafor',39,9100,'engineer','2011-03-15',1,'F'),(7,'Gil','Ruiz',30,7000,'engineer','2018-02-02',1,'M'),(6,'Finn','Bauer',23,3100,'intern','2022-09-01',1,'M');
INSERT INTO projects VALUES (1,'Apollo',2018,'open'),(2,'Beacon',2020,'closed'),(3,'Comet',2021,'open'),(4,'Delta',2022,'planned');
INSERT INTO assignments VALUES (1,1,100),(1,2,40),(5,1,80),(2,3,20),(6,1,10),(4,2,5),(5,3,60);
"""
FIRM_QUESTIONS = [
    ("How many employees work in the Research department?",
     "SELECT count(*) FROM employees e JOIN departments d USING (dept_id) WHERE d.dept_name = 'Research'"),
    ("What is the salary of Ben Reyes?", "SELECT salary FROM employees WHERE first_name = 'Ben' AND last_name = 'Reyes'"),
    ("Who is the youngest employee? Give the first name and last name.",
     "SELECT first_name, last_name FROM employees ORDER BY age LIMIT 1"),
    ("List the last names of employees older than 40.", "SELECT last_name FROM employees WHERE age > 40"),
    ("What is the average salary for each department?",
     "SELECT d.dept_name, avg(e.salary) FROM departments d JOIN employees e USING (dept_id) GROUP BY d.dept_id"),
    ("Which department has the highest budget?", "SELECT dept_name FROM departments ORDER BY budget DESC LIMIT 1"),
    ("Show all department names and the number of employees in each department.",
     "SELECT d.dept_name, count(*) FROM departments d JOIN employees e USING (dept_id) GROUP BY d.dept_id"),
    ("What are the titles of projects on which Ada works?",
     "SELECT p.title FROM projects p JOIN assignments a USING (project_id) JOIN employees e USING (emp_id) "
     "WHERE e.first_name = 'Ada'"),
    ("Find the departments that have no employees.",
     "SELECT dept_name FROM departments WHERE dept_id NOT IN (SELECT dept_id FROM employees)"),
    ("How many projects are open?", "SELECT count(*) FROM projects WHERE status = 'open'"),
    ("List the titles of projects with status 'open' or 'planned'.",
     "SELECT title FROM projects WHERE status = 'open' OR status = 'planned'"),
    ("What is the total number of hours spent on project Apollo?",
     "SELECT sum(a.hours) FROM assignments a JOIN projects p USING (project_id) WHERE p.title = 'Apollo'"),
    ("What is the most common job title?",
     "SELECT job_title FROM employees GROUP BY job_title ORDER BY count(*) DESC LIMIT 1"),
    ("Show the first name of employees who have both project Apollo and project Comet.",
     "SELECT e.first_name FROM employees e JOIN assignments a USING (emp_id) JOIN projects p USING (project_id) "
     "WHERE p.title = 'Apollo' INTERSECT SELECT e.first_name FROM employees e JOIN assignments a USING (emp_id) "
     "JOIN projects p USING (project_id) WHERE p.title = 'Comet'"),
    ("Which projects have at least 2 employees? Show their titles.",
     "SELECT p.title FROM projects p JOIN assignments a USING (project_id) GROUP BY 1 HAVING count(*) >= 2"),
    ("How much do engineers earn on average?", "SELECT avg(salary) FROM employees WHERE job_title = 'engineer'"),
    ("What are the first names of employees sorted by salary in descending order?",
     "SELECT first_name FROM employees ORDER BY salary DESC"),
    ("What are the different job titles?", "SELECT DISTINCT job_title FROM employees"),
    ("Show the title of projects that started in 2020.", "SELECT title FROM projects WHERE start_year = 2020"),
    ("What is the maximum salary for each gender?", "SELECT gender, max(salary) FROM employees GROUP BY gender"),
    ("Which employees earn less than 5000? Show their first names.",
     "SELECT first_name FROM employees WHERE salary < 5000"),
    ("Show the names of departments whose budget is at least 90000.",
     "SELECT dept_name FROM departments WHERE budget >= 90000"),
    ("What is the name of the department with the fewest employees?",
     "SELECT d.dept_name FROM departments d JOIN employees e USING (dept_id) GROUP BY 1 ORDER BY count(*) LIMIT 1"),
    ("Return the first name of the employee with the highest salary in the Research department.",
     "SELECT e.first_name FROM employees e JOIN departments d USING (dept_id) WHERE d.dept_name = 'Research' "
     "ORDER BY e.salary DESC LIMIT 1"),
    ("Find the first names of employees who do not work on any project.",
     "SELECT first_name FROM employees WHERE emp_id NOT IN (SELECT emp_id FROM assignments)"),
    ("How old is the oldest employee?", "SELECT max(age) FROM employees"),
    ("For every job title, show the average age and the number of employees.",
     "SELECT job_title, avg(age), count(*) FROM employees GROUP BY job_title"),
    ("List the first name and hire date of employees hired after 2012-01-01.",
     "SELECT first_name, hire_date FROM employees WHERE hire_date > '2012-01-01'"),
]  # fmt: skip

# no keys declared; names in camel case and abbreviated
SHOP = """
CREATE TABLE Customer (CustomerID INTEGER, CustName TEXT, City TEXT, CreditLimit REAL);
CREATE TABLE Orders (OrderID INTEGER, CustomerID INTEGER, OrderDate TEXT, TotalAmount REAL, ShipCountry TEXT);
CREATE TABLE Product (ProductID INTEGER, ProdName TEXT, Category TEXT, UnitPrice REAL, StockQty INTEGER);
CREATE TABLE OrderLine (OrderID INTEGER, ProductID INTEGER, Qty INTEGER);
INSERT INTO Customer VALUES (1,'Mira Traders','Lisbon',1000),(2,'Oak & Sons','Leeds',2500),(3,'Zen Shop','Lisbon',400),(4,'Quiet Co','Ghent',0);
INSERT INTO Orders VALUES (100,1,'2020-01-02',250,'Portugal'),(101,2,'2020-02-11',80,'UK'),(102,1,'2021-05-06',900,'Spain'),(103,3,'2021-06-01',40,'Portugal');
INSERT INTO Product VALUES (1,'Lamp','Home',25,10),(2,'Desk','Furniture',180,3),(3,'Chair','Furniture',75,0),(4,'Mug','Home',6,200);
INSERT INTO OrderLine VALUES (100,1,2),(100,2,1),(101,4,10),(102,2,5),(103,4,4),(103,1,1);
"""
SHOP_QUESTIONS = [
    ("How many customers live in Lisbon?", "SELECT count(*) FROM Customer WHERE City = 'Lisbon'"),
    ("What are the names of products in the Furniture category?", "SELECT ProdName FROM Product WHERE Category = 'Furniture'"),
    ("What is the price of the cheapest product?", "SELECT min(UnitPrice) FROM Product"),
    ("List the names of customers who have placed orders.",
     "SELECT DISTINCT c.CustName FROM Customer c JOIN Orders o ON c.CustomerID = o.CustomerID"),
    ("List the names of customers without orders.",
     "SELECT CustName FROM Customer WHERE CustomerID NOT IN (SELECT CustomerID FROM Orders)"),
    ("Show the total amount of orders for each customer name.",
     "SELECT c.CustName, sum(o.TotalAmount) FROM Customer c JOIN Orders o ON c.CustomerID = o.CustomerID GROUP BY 1"),
    ("How many orders were shipped to Portugal?", "SELECT count(*) FROM Orders WHERE ShipCountry = 'Portugal'"),
    ("What is the average unit price per category?", "SELECT Category, avg(UnitPrice) FROM Product GROUP BY Category"),
    ("Which product has the lowest stock quantity?", "SELECT ProdName FROM Product ORDER BY StockQty LIMIT 1"),
    ("Which customers have a credit limit above 500?", "SELECT CustName FROM Customer WHERE CreditLimit > 500"),
    ("What is the city of Zen Shop?", "SELECT City FROM Customer WHERE CustName = 'Zen Shop'"),
    ("Show the ids of orders that contain the product Lamp.",
     "SELECT l.OrderID FROM OrderLine l JOIN Product p ON l.ProductID = p.ProductID WHERE p.ProdName = 'Lamp'"),
    ("Count the products that cost more than 50.", "SELECT count(*) FROM Product WHERE UnitPrice > 50"),
    ("Give the number of distinct cities of customers.", "SELECT count(DISTINCT City) FROM Customer"),
    ("Show the order dates of customers from Lisbon.",
     "SELECT o.OrderDate FROM Orders o JOIN Customer c ON o.CustomerID = c.CustomerID WHERE c.City = 'Lisbon'"),
    ("Which categories have more than one product?",
     "SELECT Category FROM Product GROUP BY Category HAVING count(*) > 1"),
]  # fmt: skip

DATABASES = {"air": (AIR, AIR_QUESTIONS), "firm": (FIRM, FIRM_QUESTIONS), "shop": (SHOP, SHOP_QUESTIONS)}
