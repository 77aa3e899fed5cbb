-- Codes by which people make themselves known, hashed. `person` is who used one.
CREATE TABLE pairing_codes (
    hash TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL,
    expires BIGINT NOT NULL,
    person TEXT
);

-- People whom an account knows by a code.
CREATE TABLE paired (
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    name TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (account, person)
);
