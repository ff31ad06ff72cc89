-- TPC-C's five transactions for MariaDB and MySQL. Each is one call: it begins, ends and answers with what a terminal
-- would show. The texts between the marks are single statements.

-- statement
DROP PROCEDURE IF EXISTS tpcc_new_order
-- statement
CREATE PROCEDURE tpcc_new_order(p_w INT, p_d INT, p_c INT, p_lines VARCHAR(210), p_now DATETIME)
BEGIN
    -- A line is 14 characters of p_lines: item (6), supplying warehouse (6), quantity (2).
    DECLARE v_w_tax, v_d_tax, v_discount DECIMAL(4, 4);
    DECLARE v_last VARCHAR(16);
    DECLARE v_credit CHAR(2);
    DECLARE v_order, v_item, v_supply, v_quantity, v_stock INT;
    DECLARE v_count INT DEFAULT CHAR_LENGTH(p_lines) DIV 14;
    DECLARE v_number, v_all_local INT DEFAULT 1;
    DECLARE v_missing, v_rolled_back INT DEFAULT 0;
    DECLARE v_price DECIMAL(5, 2);
    DECLARE v_amount DECIMAL(6, 2);
    DECLARE v_total DECIMAL(12, 2) DEFAULT 0;
    DECLARE v_name, v_information VARCHAR(24);
    DECLARE v_item_data, v_stock_data VARCHAR(50);
    DECLARE v_shown VARCHAR(1500) DEFAULT '';
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_missing = 1;

    WHILE v_number <= v_count DO
        IF CAST(SUBSTRING(p_lines, 14 * v_number - 7, 6) AS UNSIGNED) <> p_w THEN
            SET v_all_local = 0;
        END IF;
        SET v_number = v_number + 1;
    END WHILE;
    SET v_number = 1;

    START TRANSACTION;
    SELECT w_tax INTO v_w_tax FROM warehouse WHERE w_id = p_w;
    SELECT d_tax, d_next_o_id INTO v_d_tax, v_order FROM district WHERE d_w_id = p_w AND d_id = p_d FOR UPDATE;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w AND d_id = p_d;
    SELECT c_discount, c_last, c_credit INTO v_discount, v_last, v_credit FROM customer
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
    IF v_missing THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the warehouse, the district or the customer is missing';
    END IF;
    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
        VALUES (p_w, p_d, v_order, p_c, p_now, NULL, v_count, v_all_local);
    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (p_w, p_d, v_order);

    WHILE v_number <= v_count AND NOT v_rolled_back DO
        SET v_item = CAST(SUBSTRING(p_lines, 14 * v_number - 13, 6) AS UNSIGNED);
        SET v_supply = CAST(SUBSTRING(p_lines, 14 * v_number - 7, 6) AS UNSIGNED);
        SET v_quantity = CAST(SUBSTRING(p_lines, 14 * v_number - 1, 2) AS UNSIGNED);
        SELECT i_price, i_name, i_data INTO v_price, v_name, v_item_data FROM item WHERE i_id = v_item;
        IF v_missing THEN
            SET v_rolled_back = 1;
        ELSE
            SELECT s_quantity, s_data,
                CASE p_d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                    WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                    WHEN 9 THEN s_dist_09 ELSE s_dist_10 END
                INTO v_stock, v_stock_data, v_information
                FROM stock WHERE s_w_id = v_supply AND s_i_id = v_item FOR UPDATE;
            IF v_missing THEN
                SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a stock is missing';
            END IF;
            SET v_stock = v_stock - v_quantity + IF(v_stock >= v_quantity + 10, 0, 91);
            UPDATE stock SET s_quantity = v_stock, s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + (v_supply <> p_w) WHERE s_w_id = v_supply AND s_i_id = v_item;
            SET v_amount = v_price * v_quantity;
            SET v_total = v_total + v_amount;
            INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                ol_quantity, ol_amount, ol_dist_info)
                VALUES (p_w, p_d, v_order, v_number, v_item, v_supply, NULL, v_quantity, v_amount, v_information);
            SET v_shown = CONCAT(v_shown, v_name, '|', v_stock, '|',
                IF(INSTR(v_item_data, 'ORIGINAL') AND INSTR(v_stock_data, 'ORIGINAL'), 'B', 'G'), '|',
                v_price, '|', v_amount, '\n');
            SET v_number = v_number + 1;
        END IF;
    END WHILE;

    IF v_rolled_back THEN
        ROLLBACK;
    ELSE
        COMMIT;
    END IF;
    SELECT v_rolled_back, v_order, v_w_tax, v_d_tax, v_discount, v_last, v_credit,
        v_total * (1 - v_discount) * (1 + v_w_tax + v_d_tax) AS total, v_shown;
END

-- statement
DROP PROCEDURE IF EXISTS tpcc_payment
-- statement
CREATE PROCEDURE tpcc_payment(p_w INT, p_d INT, p_c_w INT, p_c_d INT, p_c INT, p_last VARCHAR(16),
    p_amount DECIMAL(12, 2), p_now DATETIME)
BEGIN
    -- The customer is p_c, or if that is NULL the one in the middle of those called p_last.
    DECLARE v_w_name, v_d_name VARCHAR(10);
    DECLARE v_c, v_namesakes INT;
    DECLARE v_missing INT DEFAULT 0;
    DECLARE v_credit CHAR(2);
    DECLARE v_data VARCHAR(500);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_missing = 1;

    START TRANSACTION;
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w;
    SELECT w_name INTO v_w_name FROM warehouse WHERE w_id = p_w;
    UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w AND d_id = p_d;
    SELECT d_name INTO v_d_name FROM district WHERE d_w_id = p_w AND d_id = p_d;
    SET v_c = p_c;
    IF p_c IS NULL THEN
        SELECT COUNT(*) INTO v_namesakes FROM customer WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_last = p_last;
        SET v_namesakes = (v_namesakes + 1) DIV 2 - 1;
        SELECT c_id INTO v_c FROM customer WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_last = p_last
            ORDER BY c_first LIMIT v_namesakes, 1;
    END IF;
    SELECT c_credit INTO v_credit FROM customer
        WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c FOR UPDATE;
    IF v_missing THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the warehouse, the district or the customer is missing';
    END IF;
    IF v_credit = 'BC' THEN
        -- Without the lock it would read as of the transaction's beginning, and undo a remark of a payment since.
        SELECT c_data INTO v_data FROM customer
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c FOR UPDATE;
        SET v_data = LEFT(CONCAT(v_c, ' ', p_c_d, ' ', p_c_w, ' ', p_d, ' ', p_w, ' ', p_amount, '|', v_data), 500);
        UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
            c_payment_cnt = c_payment_cnt + 1, c_data = v_data
            WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
    ELSE
        UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
            c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c;
    END IF;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (v_c, p_c_d, p_c_w, p_d, p_w, p_now, p_amount, CONCAT(v_w_name, '    ', v_d_name));
    COMMIT;
    SELECT w_street_1, w_street_2, w_city, w_state, w_zip, d_street_1, d_street_2, d_city, d_state, d_zip,
        c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
        c_credit_lim, c_discount, c_balance, LEFT(c_data, 200) AS c_data
        FROM warehouse JOIN district ON d_w_id = p_w AND d_id = p_d
        JOIN customer ON c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c WHERE w_id = p_w;
END

-- statement
DROP PROCEDURE IF EXISTS tpcc_order_status
-- statement
CREATE PROCEDURE tpcc_order_status(p_w INT, p_d INT, p_c INT, p_last VARCHAR(16))
BEGIN
    DECLARE v_c, v_namesakes, v_order, v_carrier INT;
    DECLARE v_missing INT DEFAULT 0;
    DECLARE v_entry DATETIME;
    DECLARE v_first, v_c_last VARCHAR(16);
    DECLARE v_middle CHAR(2);
    DECLARE v_balance DECIMAL(12, 2);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_missing = 1;

    START TRANSACTION READ ONLY;
    SET v_c = p_c;
    IF p_c IS NULL THEN
        SELECT COUNT(*) INTO v_namesakes FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_last;
        SET v_namesakes = (v_namesakes + 1) DIV 2 - 1;
        SELECT c_id INTO v_c FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_last = p_last
            ORDER BY c_first LIMIT v_namesakes, 1;
    END IF;
    SELECT c_first, c_middle, c_last, c_balance INTO v_first, v_middle, v_c_last, v_balance FROM customer
        WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = v_c;
    SELECT o_id, o_entry_d, o_carrier_id INTO v_order, v_entry, v_carrier FROM orders
        WHERE o_w_id = p_w AND o_d_id = p_d AND o_c_id = v_c ORDER BY o_id DESC LIMIT 1;
    IF v_missing THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the customer or its order is missing';
    END IF;
    SELECT v_c, v_first, v_middle, v_c_last, v_balance, v_order, v_entry, v_carrier, ol_i_id, ol_supply_w_id,
        ol_quantity, ol_amount, ol_delivery_d FROM order_line
        WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id = v_order;
    COMMIT;
END

-- statement
DROP PROCEDURE IF EXISTS tpcc_delivery
-- statement
CREATE PROCEDURE tpcc_delivery(p_w INT, p_carrier INT, p_now DATETIME)
BEGIN
    DECLARE v_d, v_missing, v_delivered, v_skipped INT DEFAULT 0;
    DECLARE v_order, v_c INT;
    DECLARE v_amount DECIMAL(12, 2);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_missing = 1;

    START TRANSACTION;
    WHILE v_d < 10 DO
        SET v_d = v_d + 1;
        SELECT no_o_id INTO v_order FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d
            ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        IF v_missing THEN
            SET v_missing = 0;
            SET v_skipped = v_skipped + 1;
        ELSE
            DELETE FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d AND no_o_id = v_order;
            -- Changed before they are read: reads see what this transaction has changed, and of others what was
            -- there when it read first. The order may have come since.
            UPDATE orders SET o_carrier_id = p_carrier WHERE o_w_id = p_w AND o_d_id = v_d AND o_id = v_order;
            SELECT o_c_id INTO v_c FROM orders WHERE o_w_id = p_w AND o_d_id = v_d AND o_id = v_order;
            UPDATE order_line SET ol_delivery_d = p_now WHERE ol_w_id = p_w AND ol_d_id = v_d AND ol_o_id = v_order;
            SELECT SUM(ol_amount) INTO v_amount FROM order_line
                WHERE ol_w_id = p_w AND ol_d_id = v_d AND ol_o_id = v_order;
            UPDATE customer SET c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
                WHERE c_w_id = p_w AND c_d_id = v_d AND c_id = v_c;
            IF v_missing THEN
                SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'an undelivered order is missing';
            END IF;
            SET v_delivered = v_delivered + 1;
        END IF;
    END WHILE;
    COMMIT;
    SELECT v_delivered, v_skipped;
END

-- statement
DROP PROCEDURE IF EXISTS tpcc_stock_level
-- statement
CREATE PROCEDURE tpcc_stock_level(p_w INT, p_d INT, p_threshold INT)
BEGIN
    DECLARE v_next, v_low INT;

    START TRANSACTION READ ONLY;
    SELECT d_next_o_id INTO v_next FROM district WHERE d_w_id = p_w AND d_id = p_d;
    SELECT COUNT(DISTINCT s_i_id) INTO v_low FROM order_line
        JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
        WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id >= v_next - 20 AND ol_o_id < v_next
            AND s_quantity < p_threshold;
    COMMIT;
    SELECT v_low;
END
