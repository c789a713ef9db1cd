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
