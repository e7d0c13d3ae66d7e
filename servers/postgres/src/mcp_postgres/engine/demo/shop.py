"""A small shop's database, with the same data each time, and a few problems for `get_health` to find."""

__all__ = ["SCRIPT"]

SCRIPT = r"""
CREATE ROLE demo LOGIN PASSWORD '{password}' IN ROLE pg_monitor;
CREATE DATABASE demo OWNER demo;
ALTER DATABASE demo SET search_path = shop, public;
\connect demo
SET ROLE demo;
CREATE SCHEMA shop;
COMMENT ON SCHEMA shop IS 'A shop: what it sells, to whom, and what became of it';
SET search_path = shop;
CREATE TYPE status AS ENUM ('open', 'paid', 'shipped', 'returned');
CREATE TABLE customers (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    email text NOT NULL UNIQUE,
    country char(2) NOT NULL,
    joined date NOT NULL
);
COMMENT ON COLUMN customers.country IS 'ISO 3166, two letters';
CREATE TABLE products (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    title text NOT NULL,
    price numeric(8, 2) NOT NULL CHECK (price >= 0),
    tags text[] NOT NULL DEFAULT '{}',
    details jsonb NOT NULL DEFAULT '{}'
);
CREATE TABLE orders (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES customers,
    status status NOT NULL DEFAULT 'open',
    ordered timestamptz NOT NULL
);
COMMENT ON TABLE orders IS 'One row per order; what was ordered stands in order_items';
CREATE TABLE order_items (
    order_id integer NOT NULL REFERENCES orders ON DELETE CASCADE,
    product_id integer NOT NULL REFERENCES products,
    quantity integer NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (order_id, product_id)
);
CREATE INDEX orders_customer ON orders (customer_id);
CREATE INDEX orders_customer_again ON orders (customer_id);
CREATE TABLE visits (visited timestamptz NOT NULL, customer_id integer, page text NOT NULL)
    PARTITION BY RANGE (visited);
CREATE TABLE visits_2025 PARTITION OF visits FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE visits_2026 PARTITION OF visits FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE VIEW revenue AS
    SELECT date_trunc('month', ordered)::date AS month, sum(quantity * price) AS total
    FROM orders JOIN order_items ON order_id = orders.id JOIN products ON products.id = product_id
    WHERE status <> 'returned' GROUP BY 1;
CREATE FUNCTION total(order_number integer) RETURNS numeric LANGUAGE sql STABLE AS
    'SELECT sum(quantity * price) FROM shop.order_items JOIN shop.products ON id = product_id
     WHERE order_id = order_number';
INSERT INTO customers (name, email, country, joined)
    SELECT (ARRAY['Ada', 'Grace', 'Edsger', 'Barbara', 'Tony', 'Frances', 'Donald', 'Margaret'])[n % 8 + 1] || ' ' || n,
        'customer' || n || '@example.org', (ARRAY['DE', 'FR', 'JP', 'BR', 'KE'])[n % 5 + 1], date '2024-01-01' + n % 600
    FROM generate_series(1, 500) n;
INSERT INTO products (title, price, tags, details)
    SELECT (ARRAY['Lamp', 'Chair', 'Table', 'Shelf', 'Clock', 'Rug'])[n % 6 + 1] || ' no. ' || n, 5 + n * 7 % 90 + 0.95,
        ARRAY[(ARRAY['oak', 'steel', 'glass'])[n % 3 + 1]],
        jsonb_build_object('weight', n % 20, 'colour', (ARRAY['red', 'blue'])[n % 2 + 1])
    FROM generate_series(1, 60) n;
INSERT INTO orders (customer_id, status, ordered)
    SELECT n * 13 % 500 + 1, (ARRAY['open', 'paid', 'shipped', 'shipped', 'shipped', 'returned'])[n % 6 + 1]::status,
        timestamptz '2025-01-01 08:00+00' + n * interval '47 minutes'
    FROM generate_series(1, 20000) n;
INSERT INTO order_items SELECT n, n * 7 % 60 + 1, n % 3 + 1 FROM generate_series(1, 20000) n;
INSERT INTO order_items SELECT n, n * 11 % 60 + 1, 1 FROM generate_series(1, 20000, 3) n ON CONFLICT DO NOTHING;
INSERT INTO visits
    SELECT timestamptz '2025-01-01 00:00+00' + n * interval '20 minutes', n % 500 + 1, '/products/' || (n % 60 + 1)
    FROM generate_series(1, 30000) n;
\connect demo
ANALYZE;
"""
