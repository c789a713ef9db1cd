CREATE TABLE Customer (CustomerID INTEGER, CustName TEXT, City TEXT, CreditLimit REAL);
CREATE TABLE Orders (OrderID INTEGER, CustomerID INTEGER, OrderDate TEXT, TotalAmount REAL, ShipCountry TEXT);
CREATE TABLE Product (ProductID INTEGER, ProdName TEXT, Category TEXT, UnitPrice REAL, StockQty INTEGER);
CREATE TABLE OrderLine (OrderID INTEGER, ProductID INTEGER, Qty INTEGER);
INSERT INTO Customer VALUES (1,'Mira Traders','Lisbon',1000),(2,'Oak & Sons','Leeds',2500),(3,'Zen Shop','Lisbon',400),(4,'Quiet Co','Ghent',0);
INSERT INTO Orders VALUES (100,1,'2020-01-02',250,'Portugal'),(101,2,'2020-02-11',80,'UK'),(102,1,'2021-05-06',900,'Spain'),(103,3,'2021-06-01',40,'Portugal');
INSERT INTO Product VALUES (1,'Lamp','Home',25,10),(2,'Desk','Furniture',180,3),(3,'Chair','Furniture',75,0),(4,'Mug','Home',6,200);
INSERT INTO OrderLine VALUES (100,1,2),(100,2,1),(101,4,10),(102,2,5),(103,4,4),(103,1,1);
