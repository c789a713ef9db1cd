"""Headers spelled out: people shorten the names of columns, and ask in whole words."""

import re

_SHORT = """
jan January; feb February; mar March; apr April; jun June; jul July; aug August; sep September; sept September;
oct October; nov November; dec December; mon Monday; tue Tuesday; tues Tuesday; wed Wednesday; thu Thursday;
thur Thursday; thurs Thursday; fri Friday; sat Saturday;
yr year; yrs years; mth month; mths months; wk week; wks weeks; hr hour; hrs hours; mins minutes; secs seconds;
dt date; dob date of birth; qtr quarter; fy fiscal year; ytd year to date; freq frequency; dur duration;
sched scheduled; appt appointment; eta estimated arrival; etd estimated departure; arr arrival; dep departure;
qty quantity; amt amount; amnt amount; num number; no number; nr number; tot total; avg average; max maximum;
pct percent; approx approximate; est estimated; cnt count; lvl level; lim limit; pcs pieces; pkg package; doz dozen;
ea each; uom unit of measure; wt weight; ht height; temp temperature; dist distance; vol volume;
cap capacity; km kilometres; kg kilograms; lbs pounds; oz ounces; sqm square metres; sqft square feet;
acct account; acc account; bal balance; inv invoice; pmt payment; pd paid; chg charge; disc discount; comm commission;
sal salary; bdgt budget; rev revenue; ins insurance; po purchase order; recd received; req required; reqd required;
ord ordered; dest destination; orig origin; pax passengers; flt flight; whse warehouse; stk stock;
tel telephone; ph phone; mob mobile; addr address; loc location; bldg building; apt apartment; rm room; flr floor;
ctry country; pop population; dept department; org organisation; mgr manager; asst assistant; emp employee;
cust customer; supp supplier; mfr manufacturer; rep representative; resp responsible; poc point of contact;
init initials; inits initials; sig signature; fname first name; lname last name; nat nationality; lang language;
desc description; descr description; cat category; ref reference; rptd reported; cond condition; insp inspection;
maint maintenance; equip equipment; veh vehicle; reg registration; cert certificate; lic licence; ser serial;
rx prescription; dx diagnosis; tx treatment; hosp hospital; med medication; instr instructor; tchr teacher;
prof professor; sem semester; grp group; div division; pos position; pts points; pld played; opp opponent;
att attendance; rnk rank; rtg rating; ot overtime; hol holiday;
str Straße; plz Postleitzahl; anz Anzahl; gew Gewicht; geb geboren; bem Bemerkung; bez Bezeichnung; dat Datum;
abt Abteilung; ges gesamt; betr Betrag; lief Lieferant; pers Personen; zust Zustand;
qté quantité; tél téléphone; réf référence; adr adresse; nb nombre; éch échéance; dép départ;
cant cantidad; tlf teléfono; tfno teléfono; fec fecha; dir dirección; ud unidad; prov proveedor; obs observaciones
"""
_SPELLED = dict(entry.strip().split(" ", 1) for entry in _SHORT.replace("\n", " ").split(";"))
_WORD = re.compile(r"[^\W\d_]+\.?")


def spelled_out(header: str) -> str:
    """A header with the short forms that are usual in tables written out: `Wt kg` is `weight kilograms`."""
    return _WORD.sub(lambda found: _SPELLED.get(found[0].rstrip(".").casefold(), found[0]), header)
