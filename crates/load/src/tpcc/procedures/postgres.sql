-- TPC-C's five transactions for PostgreSQL. Each is one call outside a transaction, which begins one and ends it with
-- its own end; only New-Order may roll back, which takes a procedure. What a terminal would show comes back in the
-- parameters called r_. The texts between the marks are single statements.

-- statement
DROP PROCEDURE IF EXISTS tpcc_new_order
-- statement
CREATE PROCEDURE tpcc_new_order(p_w INT, p_d INT, p_c INT, p_lines TEXT, p_now TIMESTAMP,
    INOUT r_rolled_back INT, INOUT r_order INT, INOUT r_w_tax NUMERIC, INOUT r_d_tax NUMERIC, INOUT r_discount NUMERIC,
    INOUT r_last TEXT, INOUT r_credit TEXT, INOUT r_total NUMERIC, INOUT r_shown TEXT)
LANGUAGE plpgsql AS $$
DECLARE
    -- A line is 14 characters of p_lines: item (6), supplying warehouse (6), quantity (2).
    v_count INT := LENGTH(p_lines) / 14;
    v_all_local INT := 1;
    v_item INT;
    v_supply INT;
    v_quantity INT;
    v_stock INT;
    v_price NUMERIC;
    v_amount NUMERIC;
    v_name TEXT;
    v_information TEXT;
    v_item_data TEXT;
    v_stock_data TEXT;
BEGIN
    r_rolled_back := 0;
    r_total := 0;
    r_shown := '';
    FOR v_number IN 1..v_count LOOP
        IF SUBSTRING(p_lines, 14 * v_number - 7, 6)::INT <> p_w THEN
            v_all_local := 0;
        END IF;
    END LOOP;

    SELECT w_tax INTO r_w_tax FROM warehouse WHERE w_id = p_w;
    SELECT d_tax, d_next_o_id INTO r_d_tax, r_order FROM district WHERE d_w_id = p_w AND d_id = p_d FOR UPDATE;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w AND d_id = p_d;
    SELECT c_discount, c_last, c_credit INTO r_discount, r_last, r_credit FROM customer
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
    IF r_w_tax IS NULL OR r_order IS NULL OR NOT FOUND THEN
        RAISE 'the warehouse, the district or the customer is missing';
    END IF;
    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
        VALUES (p_w, p_d, r_order, p_c, p_now, NULL, v_count, v_all_local);
    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (p_w, p_d, r_order);

    FOR v_number IN 1..v_count LOOP
        v_item := SUBSTRING(p_lines, 14 * v_number - 13, 6)::INT;
        v_supply := SUBSTRING(p_lines, 14 * v_number - 7, 6)::INT;
        v_quantity := SUBSTRING(p_lines, 14 * v_number - 1, 2)::INT;
        SELECT i_price, i_name, i_data INTO v_price, v_name, v_item_data FROM item WHERE i_id = v_item;
        IF NOT FOUND THEN
            ROLLBACK;
            r_rolled_back := 1;
            RETURN;
        END IF;
        SELECT s_quantity, s_data,
            CASE p_d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
            INTO v_stock, v_stock_data, v_information
            FROM stock WHERE s_w_id = v_supply AND s_i_id = v_item FOR UPDATE;
        IF NOT FOUND THEN
            RAISE 'a stock is missing';
        END IF;
        v_stock := v_stock - v_quantity + CASE WHEN v_stock >= v_quantity + 10 THEN 0 ELSE 91 END;
        UPDATE stock SET s_quantity = v_stock, s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (v_supply <> p_w)::INT WHERE s_w_id = v_supply AND s_i_id = v_item;
        v_amount := v_price * v_quantity;
        r_total := r_total + v_amount;
        INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
            ol_quantity, ol_amount, ol_dist_info)
            VALUES (p_w, p_d, r_order, v_number, v_item, v_supply, NULL, v_quantity, v_amount, v_information);
        r_shown := CONCAT(r_shown, v_name, '|', v_stock, '|',
            CASE WHEN STRPOS(v_item_data, 'ORIGINAL') > 0 AND STRPOS(v_stock_data, 'ORIGINAL') > 0 THEN 'B' ELSE 'G' END,
            '|', v_price, '|', v_amount, CHR(10));
    END LOOP;
    r_total := r_total * (1 - r_discount) * (1 + r_w_tax + r_d_tax);
END $$

-- statement
DROP PROCEDURE IF EXISTS tpcc_payment
-- statement
CREATE PROCEDURE tpcc_payment(p_w INT, p_d INT, p_c_w INT, p_c_d INT, p_c INT, p_last TEXT, p_amount NUMERIC,
    p_now TIMESTAMP, INOUT r_shown TEXT)
LANGUAGE plpgsql AS $$
DECLARE
    -- The customer is p_c, or if that is NULL the one in the middle of those called p_last.
    v_c INT := p_c;
    v_namesakes INT;
    v_w_name TEXT;
    v_d_name TEXT;
    v_credit TEXT;
    v_data TEXT;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w;
    SELECT w_name INTO v_w_name FROM warehouse WHERE w_id = p_w;
    UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w AND d_id = p_d;
    SELECT d_name INTO v_d_name FROM district WHERE d_w_id = p_w AND d_id = p_d;
    IF p_c IS NULL THEN
        SELECT COUNT(*) INTO v_namesakes FROM customer WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_last = p_last;
        SELECT c_id INTO v_c FROM customer WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_last = p_last
            ORDER BY c_first LIMIT 1 OFFSET (v_namesakes + 1) / 2 - 1;
    END IF;
    SELECT c_credit INTO v_credit FROM customer
        WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c FOR UPDATE;
    IF v_w_name IS NULL OR v_d_name IS NULL OR NOT FOUND THEN
        RAISE 'the warehouse, the district or the customer is missing';
    END IF;
    IF v_credit = 'BC' THEN
        SELECT c_data INTO v_data FROM customer WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
        v_data := LEFT(CONCAT(v_c, ' ', p_c_d, ' ', p_c_w, ' ', p_d, ' ', p_w, ' ', p_amount, '|', v_data), 500);
        UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
            c_payment_cnt = c_payment_cnt + 1, c_data = v_data
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
    ELSE
        UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
            c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
    END IF;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (v_c, p_c_d, p_c_w, p_d, p_w, p_now, p_amount, CONCAT(v_w_name, '    ', v_d_name));
    SELECT CONCAT_WS('|', w_street_1, w_street_2, w_city, w_state, w_zip, d_street_1, d_street_2, d_city, d_state,
        d_zip, c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,
        c_credit, c_credit_lim, c_discount, c_balance, LEFT(c_data, 200)) INTO r_shown
        FROM warehouse JOIN district ON d_w_id = p_w AND d_id = p_d
        JOIN customer ON c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c WHERE w_id = p_w;
END $$

-- statement
DROP FUNCTION IF EXISTS tpcc_order_status
-- statement
CREATE FUNCTION tpcc_order_status(p_w INT, p_d INT, p_c INT, p_last TEXT)
RETURNS TABLE (r_c INT, r_first TEXT, r_middle TEXT, r_last TEXT, r_balance NUMERIC, r_order INT, r_entry TIMESTAMP,
    r_carrier INT, r_item INT, r_supply INT, r_quantity INT, r_amount NUMERIC, r_delivered TIMESTAMP)
LANGUAGE plpgsql AS $$
DECLARE
    v_namesakes INT;
BEGIN
    r_c := p_c;
    IF p_c IS NULL THEN
        SELECT COUNT(*) INTO v_namesakes FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_last;
        SELECT c_id INTO r_c FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_last
            ORDER BY c_first LIMIT 1 OFFSET (v_namesakes + 1) / 2 - 1;
    END IF;
    SELECT c_first, c_middle, c_last, c_balance INTO r_first, r_middle, r_last, r_balance FROM customer
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = r_c;
    SELECT o_id, o_entry_d, o_carrier_id INTO r_order, r_entry, r_carrier FROM orders
        WHERE o_w_id = p_w AND o_d_id = p_d AND o_c_id = r_c ORDER BY o_id DESC LIMIT 1;
    IF r_first IS NULL OR NOT FOUND THEN
        RAISE 'the customer or its order is missing';
    END IF;
    FOR r_item, r_supply, r_quantity, r_amount, r_delivered IN
        SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
        WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id = r_order
    LOOP
        RETURN NEXT;
    END LOOP;
END $$

-- statement
DROP PROCEDURE IF EXISTS tpcc_delivery
-- statement
CREATE PROCEDURE tpcc_delivery(p_w INT, p_carrier INT, p_now TIMESTAMP, INOUT r_delivered INT, INOUT r_skipped INT)
LANGUAGE plpgsql AS $$
DECLARE
    v_order INT;
    v_c INT;
    v_amount NUMERIC;
BEGIN
    r_delivered := 0;
    r_skipped := 0;
    FOR v_d IN 1..10 LOOP
        SELECT no_o_id INTO v_order FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d
            ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        IF NOT FOUND THEN
            r_skipped := r_skipped + 1;
            CONTINUE;
        END IF;
        DELETE FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d AND no_o_id = v_order;
        UPDATE orders SET o_carrier_id = p_carrier WHERE o_w_id = p_w AND o_d_id = v_d AND o_id = v_order;
        SELECT o_c_id INTO v_c FROM orders WHERE o_w_id = p_w AND o_d_id = v_d AND o_id = v_order;
        UPDATE order_line SET ol_delivery_d = p_now WHERE ol_w_id = p_w AND ol_d_id = v_d AND ol_o_id = v_order;
        SELECT SUM(ol_amount) INTO v_amount FROM order_line
            WHERE ol_w_id = p_w AND ol_d_id = v_d AND ol_o_id = v_order;
        UPDATE customer SET c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = p_w AND c_d_id = v_d AND c_id = v_c;
        IF NOT FOUND OR v_amount IS NULL THEN
            RAISE 'an undelivered order is missing';
        END IF;
        r_delivered := r_delivered + 1;
    END LOOP;
END $$

-- statement
DROP FUNCTION IF EXISTS tpcc_stock_level
-- statement
CREATE FUNCTION tpcc_stock_level(p_w INT, p_d INT, p_threshold INT) RETURNS INT
LANGUAGE plpgsql AS $$
DECLARE
    v_next INT;
    v_low INT;
BEGIN
    SELECT d_next_o_id INTO v_next FROM district WHERE d_w_id = p_w AND d_id = p_d;
    SELECT COUNT(DISTINCT s_i_id) INTO v_low FROM order_line
        JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
        WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id >= v_next - 20 AND ol_o_id < v_next
            AND s_quantity < p_threshold;
    RETURN v_low;
END $$
