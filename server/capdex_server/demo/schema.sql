-- Columns are named as the document names the properties, so that a row is what is answered.
-- The views add what is worked out; today() and now() are functions of the connection.

CREATE TABLE counters (prefix TEXT PRIMARY KEY, last INTEGER NOT NULL);

CREATE TABLE replays (
    key TEXT NOT NULL,
    operation TEXT NOT NULL,
    digest TEXT NOT NULL,
    status INTEGER NOT NULL,
    headers TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (key, operation)
);

CREATE TABLE teams (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    parentId TEXT REFERENCES teams (id),
    leadId TEXT REFERENCES workers (id) DEFERRABLE INITIALLY DEFERRED,
    createdAt TEXT NOT NULL
);

CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE COLLATE NOCASE,
    phone TEXT,
    role TEXT NOT NULL,
    teamId TEXT REFERENCES teams (id),
    managerId TEXT REFERENCES workers (id),
    contract TEXT NOT NULL,
    weeklyHours REAL NOT NULL,
    skills TEXT NOT NULL,
    address TEXT,
    vacationDays INTEGER NOT NULL,
    hiredOn TEXT NOT NULL,
    lastDay TEXT,
    createdAt TEXT NOT NULL
);

CREATE TABLE shifts (
    id TEXT PRIMARY KEY,
    teamId TEXT NOT NULL REFERENCES teams (id),
    workerId TEXT REFERENCES workers (id),
    role TEXT NOT NULL,
    startsAt TEXT NOT NULL,
    endsAt TEXT NOT NULL,
    breakMinutes INTEGER NOT NULL,
    status TEXT NOT NULL,
    notes TEXT,
    createdAt TEXT NOT NULL
);
CREATE INDEX shiftsByWorker ON shifts (workerId, startsAt);

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    teamId TEXT NOT NULL REFERENCES teams (id),
    description TEXT,
    contract TEXT NOT NULL,
    openings INTEGER NOT NULL,
    payRange TEXT,
    closesOn TEXT,
    status TEXT NOT NULL,
    postedAt TEXT NOT NULL
);

CREATE TABLE applications (
    id TEXT PRIMARY KEY,
    jobId TEXT NOT NULL REFERENCES jobs (id),
    name TEXT NOT NULL,
    email TEXT NOT NULL COLLATE NOCASE,
    coverLetter TEXT,
    earliestStart TEXT,
    skills TEXT NOT NULL,
    status TEXT NOT NULL,
    appliedAt TEXT NOT NULL,
    UNIQUE (jobId, email)
);

CREATE TABLE timeOff (
    id TEXT PRIMARY KEY,
    workerId TEXT NOT NULL REFERENCES workers (id),
    kind TEXT NOT NULL,
    startsOn TEXT NOT NULL,
    endsOn TEXT NOT NULL,
    days INTEGER NOT NULL,
    reason TEXT,
    status TEXT NOT NULL,
    decisionNote TEXT,
    decidedAt TEXT,
    createdAt TEXT NOT NULL
);
CREATE INDEX timeOffByWorker ON timeOff (workerId, startsOn);

CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    workerId TEXT NOT NULL REFERENCES workers (id),
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    fileName TEXT NOT NULL,
    contentType TEXT NOT NULL,
    expiresOn TEXT,
    uploadedAt TEXT NOT NULL,
    content BLOB NOT NULL
);

CREATE TABLE rates (
    workerId TEXT NOT NULL REFERENCES workers (id),
    effectiveFrom TEXT NOT NULL,
    hourlyRate INTEGER NOT NULL,
    currency TEXT NOT NULL,
    PRIMARY KEY (workerId, effectiveFrom)
);

CREATE TABLE timesheets (
    id TEXT PRIMARY KEY,
    workerId TEXT NOT NULL REFERENCES workers (id),
    weekStart TEXT NOT NULL,
    entries TEXT NOT NULL,
    totalHours REAL NOT NULL,
    grossPay INTEGER NOT NULL,
    currency TEXT NOT NULL,
    status TEXT NOT NULL,
    submittedAt TEXT NOT NULL,
    approvedAt TEXT,
    UNIQUE (workerId, weekStart)
);

CREATE TABLE invoices (
    id TEXT PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    customer TEXT NOT NULL,
    status TEXT NOT NULL,
    currency TEXT NOT NULL,
    lines TEXT NOT NULL,
    taxPercent REAL NOT NULL,
    subtotal INTEGER NOT NULL,
    tax INTEGER NOT NULL,
    total INTEGER NOT NULL,
    amountPaid INTEGER NOT NULL,
    payments TEXT NOT NULL,
    issuedOn TEXT,
    dueOn TEXT NOT NULL,
    notes TEXT,
    createdAt TEXT NOT NULL
);

CREATE VIEW workerRows AS
SELECT
    workers.*,
    CASE
        WHEN lastDay < today() THEN 'left'
        WHEN EXISTS (
            SELECT 1 FROM timeOff
            WHERE timeOff.workerId = workers.id AND timeOff.status = 'approved'
                AND today() BETWEEN startsOn AND endsOn
        ) THEN 'on_leave'
        ELSE 'active'
    END AS status
FROM workers;

CREATE VIEW teamRows AS
SELECT
    teams.*,
    (SELECT count(*) FROM workerRows WHERE teamId = teams.id AND status <> 'left') AS headcount
FROM teams;

CREATE VIEW shiftRows AS
SELECT
    shifts.id, shifts.teamId, workerId, workers.name AS workerName, shifts.role, startsAt, endsAt,
    breakMinutes, notes, shifts.createdAt,
    CASE WHEN status = 'published' AND endsAt <= now() THEN 'completed' ELSE status END AS status
FROM shifts LEFT JOIN workers ON workers.id = shifts.workerId;

CREATE VIEW timeOffRows AS
SELECT timeOff.*, workers.name AS workerName
FROM timeOff JOIN workers ON workers.id = timeOff.workerId;

CREATE VIEW documentRows AS
SELECT
    id, workerId, kind, title, fileName, contentType, length(content) AS bytes, expiresOn, uploadedAt
FROM documents;

CREATE VIEW timesheetRows AS
SELECT timesheets.*, workers.name AS workerName
FROM timesheets JOIN workers ON workers.id = timesheets.workerId;

CREATE VIEW invoiceRows AS
SELECT invoices.*, CASE WHEN status = 'void' THEN 0 ELSE total - amountPaid END AS amountDue
FROM invoices;
