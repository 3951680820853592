-- One statement a line, over the tables of test_sql.py: nightly.
select a, b from t where a > 1
select t.a, u.c from t join u on t.a = u.a
select * from t join u on t.a = u.a
select t.a, u.a from t full join u on t.a = u.a
select * from t left semi join u on t.a = u.a
select * from t left anti join u on t.a = u.a
select t.a, u.c from t, u where t.a = u.a and u.c > 100
select t.a, u.c from t cross join u
select t.a, u.c from t join u
select t.a, u.c, n.v from t, u join n on t.a = n.v
select x.a, y.a from t x join t y on x.a = y.b / 10
select count(*) from t
select count(*), sum(a), avg(b), min(s), max(d) from t
select count(distinct a), count(distinct a, b), sum(distinct b) from t
select count(*) as n from t where a > 100
select sum(v), count(v), count(*) from e
select a, count(*) as n from t group by a
select count(*) as n, a from t group by a
select a as k, sum(b) as total from t group by a
select substr(s, 1, 1) as s, count(*) from t group by s
select upper(s), count(*) from t group by upper(s)
select UPPER(t.s), count(*) from t group by upper(s)
select t.a, count(*) from t group by a
select a, count(*) from t group by t.a
select a + 1 as p, a + 2 as q, count(*) from t group by a
select a + sum(b) from t group by a
select sum(b) / count(*) from t group by a
select sum(b) from t group by all
select count(*) from t group by a
select 1 from t group by a
select a from t group by a
select distinct a from t
select a, sum(b) s from t group by a having s > 10
select count(*) from t having count(*) > 1
select a, count(*) from t group by a having count(*) = (select max(v) + 1 from n)
select a as k, sum(b) from t group by a order by a limit 3
select a + 1, count(*) from t group by a + 1 order by 1 desc limit 2
select s as a from t order by a limit 2
select a + b as c from t order by b desc, a limit 1
select * from t order by t.b desc, a limit 2
select a from t order by a offset 2
select a from t order by a limit all
select a, sum(b) over (partition by a) from t
select a, sum(b) over (partition by a order by b rows between unbounded preceding and current row) from t
select a, count(*) over (order by d range between interval 1 year preceding and current row) from t
select a, lag(b, 1) over w, lead(b, 1, 0) over w from t window w as (partition by a order by b)
select a, rank() over (order by sum(b) desc nulls last) as r from t group by a
select a, sum(b), sum(b) / sum(sum(b)) over () as share from t group by a
select a, ntile(2) over (order by a, b), percent_rank() over (order by a), dense_rank() over (order by a) from t
select a from t union select a from u
select a from t union all select a from u
select a from t except all select a from u
select a from t minus select a from u
(select a from t order by a desc limit 1) union all (select a from u order by a limit 1)
select a x from t union all select 1.5 order by x
values (1, 'a'), (2, 'b')
select * from values (1, 'a'), (2.5, null) as v(x, y)
select * from values 1, 2, 3 as v(x)
select col1 + 1 from values (1, 2)
select * from range(3)
select id * 2 as d from range(1, 5) r where r.id > 2
select 1
select 1 where false
select count(*)
select 1 + 1 as two order by two
with c(p, q) as (select a, b from t) select p, q from c where q is not null
with c as (select a, count(*) n from t group by a) select x.a, y.n from c x join c y on x.a = y.a
select * from (select a from t) 
select q.a from (select a, b from t) q where q.b > 10
select a from (select a from (select * from t where b > 10) x) y
select (select max(c) from u) as m, a from t
select (select max(c) from u) + 1 from t
select a, (select max(c) from u where u.a = t.a) as m from t
select a, (select count(*) from u where u.a = t.a) as m from t
select * from t where a not in (select a from u)
select * from t where (a, b) in (select a, c / 10 from u)
select * from t where a in (select a from u where u.c > t.b)
select a, case when a in (select v from n) then 'in' else 'out' end as f from t
select a in (select v from n) from t
select a, sum(b) from t group by a having sum(b) > (select avg(c) / 10 from u)
select a, (select max(v) from n) as m, sum(b) from t group by a
select max((select max(v) from n)) from t
select a, e from t lateral view explode(xs) v as e
select a, k, w from t lateral view explode(mp) m as k, w
select t.a, explode(xs) as e from t
select a, posexplode(xs) as (p, e) from t
select a, q.m from t left join lateral (select c as m from u where u.a = t.a) q on q.m > 100
select a, b, count(*) as n from t group by cube(a, b)
select count(*), a from t group by rollup(a)
select t.*, 1 as one from t
select u.*, t.a from t join u on t.a = u.a
select st.f, t.st.g from t
select t.st.f as x from t where st.f > 1
select count(*) as `count`, `a` from t group by `a`
select A, B from T where T.A > 1
select a, a + 1 as b2, b2 * 2 as b3 from t
select array_agg(a) from (select a from t order by a) 
select a, collect_set(b) from t group by a
select max_by(s, b), min_by(s, b) from t
select percentile(b, 0.5), median(b), stddev(b), var_pop(b), corr(a, b) from t
select bool_and(bo), bool_or(bo), every(bo), any(bo), some(bo) from t
select first(b, true), any_value(7) from (select b from t where b = 30)
select first(b) ignore nulls from (select b from t where b = 30)
select cust, sum(amt) as total from ord group by cust order by total desc nulls last limit 1
select day, sum(amt) over (partition by cust order by day) as run from ord
select cust, date_trunc('month', day) as month, sum(amt) from ord group by cust, month
select year(day) as y, month(day) as mth, count(*) from ord group by y, mth order by y, mth
select a, case when b > 10 then 'hi' else 'lo' end as lvl, count(*) from t group by a, lvl
select a, case when b > 10 then 'hi' else 'lo' end as lvl, count(*) from t group by a, case when b > 10 then 'hi' else 'lo' end
select x.a from (select a from t union all select a from u) x group by x.a having count(*) > 2
select a, b from t where (a, b) = (1, 10)
select if(a > 1, 'x', 'y') as z, count(*) from t group by if(a > 1, 'x', 'y')
select a from t where s like '%o%' and d between date'2020-01-01' and date'2020-12-31'
select /*+ broadcast(u) */ t.a from t join u on t.a = u.a
select t.a, t.b from t join (u join n on u.a = n.v) on t.a = u.a
select * from (select * from t) x, (select * from u) y where x.a = y.a
select sum(x.n) from (select count(*) as n from t group by a) x
select count(*) from (select distinct a from t)
select all a from t
select a from t where a = 1 or a = 2 or a = 3 or a = 4 or a = 5 or a = 6 or a = 7 or a = 8 or a = 9 or a = 10 or a = 11
select distinct a, count(*) from t group by a, b
select count(1), count(a), count(*) + 1 from t
select u.k, max(t.s) from t right join u on u.a = t.a group by u.k order by u.k
select t.a as ta, u.a as ua from t join u on t.a <=> u.a
select a as k, count(*) from t group by grouping sets ((a), ())
select a, a + 1 as p, count(*) as n from t group by rollup(a)
select a, (select count(*) from u where u.a = t.a having count(*) > 1) z from t
select a from t where a in (select a from u where u.c > t.b union all select v from n)
select a from t where exists (select sum(c) over (order by c) from u where u.a = t.a)
select a from t where (select count(distinct k) from u where u.a = t.a) = 1
select a from t where exists (with q(x, y, z) as (select * from u) select 1 from q where q.x = t.a)
select a from t where exists (select 1 from values (1), (2) as v(x) where v.x = t.a)
select a, (select max(c) from u where u.a = t.a) m from t order by m desc nulls last, b limit 2
select a, b from t where a in (select a from u where k in ('p', 'q') group by a having max(c) > 100) order by b
select a, case when exists (select 1 from n where v = t.a) then 1 else 0 end as f from t
select sum(case when exists (select 1 from n where v = t.a) then 1 else 0 end) as f from t
select coalesce((select max(c) from u where a = t.b), -1) from t
select a, sum(b) over (order by b, a rows 1 preceding) as z from t
select a, sum(b) over (order by b, a rows between 1 preceding and 1 following) as z from t
select a, count(*) over (order by b range between 10 preceding and current row) as z from t
select a, first_value(b) ignore nulls over (order by a, b) as z, nth_value(b, 2) over (order by a, b) as y from t
select count(distinct a) filter (where b > 10) as z, max_by(s, b) filter (where a > 1) as y from t
select a + 1 as p, count(*) from t group by rollup(a)
select sum(a) as n, t.a, grouping(a) as g from t group by rollup(t.a)
select b as k, a as j, count(*) from t group by grouping sets ((a, b), (b)) having count(*) > 0
select a from t group by t.a having t.a > 1
select x.a, count(*) from t x join u y on x.a = y.a group by x.a, y.a having y.a > 1
select y.a, count(*) from t x left join u y on x.a = y.a group by x.a, y.a
select x.a, y.a, count(*) from t x left join u y on x.a = y.a group by y.a, x.a
select st.f, count(*) from t group by st.f
select st.f as f, count(*) from t group by st.f having st.f > 1
select t.st.f, count(*) from t group by st.f order by st.f limit 3
select f from (select st.f, a from t) order by a limit 2
select xs[0] from t where size(xs) > 0 order by xs[0] limit 1
select a from t order by st.f desc, b limit 2
select st from t where st is not null order by st.f desc limit 2
select st as z from t where st is not null order by z.f desc limit 2
select a, max(b) as b from t group by a having b > 10
select a, max(b) as b from t group by a having max(b) > 10 order by b desc, a
select a, count(*) c from t group by a having c > 1 and a > 0
select a % 2 as p, sum(b) from t group by a % 2 having p = 1
select a % 2 as p, sum(b) from t group by p having a % 2 = 1
select a, b from t group by a, b having a = 2 order by b
select sum(b) as s from t group by s
select max(s) as s, a from t group by a having s = 'one'
select a, (select count(*) from u where u.a = q.a) from (select distinct a from t) q
select a, (select max(c) from u where u.a = t.a) + (select min(v) from n) as z from t
select a from t where (select count(*) from u where u.a = t.a) > 1
select a from t where a = (select max(a) from u having count(*) > 1)
select a from t where b > (select avg(b) from t i where i.a = t.a or i.a is null)
select a from t where b in (select max(b) from t i group by i.a)
select a from t where (a, s) not in (select a, k from u where a is not null)
select a from t where not (a in (select v from n) and b > 10)
select a from t where a in (select a from u union select v from n)
with q as (select a, c from u) select a from t where a in (select a from q) and exists (select 1 from q where q.a = t.a and c > 100)
select * from (select a, row_number() over (partition by a order by b desc nulls last) as rn from t) where rn = 1
select * from (values (1, 2), (3, 4)) as v(p, q) where (p, q) in (select 1, 2)
select count(*) from t where a not in (select a from u where a > 100)
select t.a, q.cnt from t left join (select a, count(*) as cnt from u group by a) q on q.a = t.a
select a, sum(case when s = 'one' then b else 0 end) as ones, 100.0 * sum(b) / (select sum(b) from t) as pct from t group by a
select a, b, sum(b) over (partition by a order by b) / sum(b) over (partition by a) as r from t
select distinct s, count(*) over (partition by s) as n from t
select max(a) - min(a) as spread, count(distinct s) as k from t having spread > 1
select 'x' as k, sum(b) from t group by 'x'
select a from (select a, b from t) as q(b, a) order by a limit 2
select q.* from (select a as x, b as y from t) q where x > 1
select q.x.f from (select st as x from t) q
select `q`.`x y` from (select a as `x y` from t) q
select `x.y` from (select a as `x.y` from t) order by `x.y` limit 2
select `x.y`, count(*) from (select a as `x.y` from t) group by `x.y` having `x.y` > 1
select q.`x.y` + 1 from (select a as `x.y` from t) q
select `ä` from (select a as `ä` from t)
select t.a from t join u on t.a = u.a join n on n.v = u.a where u.c between 100 and 300
select t.a from t left join u on t.a = u.a left join n on n.v = u.a where n.v is null
select t.a, u.a, n.v from t full join u on t.a = u.a full join n on n.v = u.a
select a, u.c from t join u using (a) join n on n.v = a
select coalesce(t.a, u.a) as z from t full join u using (a)
select t.a as l, u.a as r from t full join u using (a)
select t.a, t.b, u.c from t left join u using (a) order by t.b desc, u.c limit 3
select e from t lateral view explode(xs) x as e order by a desc, e limit 2
select v.e as e2, count(*) from t lateral view explode(xs) v as e group by v.e
select a from t where exists (select 1 from u lateral view explode(array(1,2)) z as q where z.q = t.a and u.a = t.a)
select a, v.e from t lateral view explode(xs) v as e where v.e in (select v from n) or exists (select 1 from u where u.a = v.e)
select stack(2, 1, 'a', 2, 'b') as (n, s)
select a, json_tuple('{"x":1}', 'x') as j from t
select transform(xs, x -> x + a) as y, filter(xs, e -> e > (a + 0)) as z from t
select aggregate(xs, cast(0 as bigint), (acc, x) -> acc + x) from t
select map_from_entries(array(struct('k', a))) from t where a is not null
select date_add(d, a) as p, d + make_interval(0, 1), d - d, ts - ts from t
select cast(ts as date) as p, cast(d as string), cast(x as decimal(20, 4)), cast(b as boolean) from t
select a from t where d > '2020-01-01' and ts < timestamp'2021-01-01'
select a from t where s rlike '^[oT]\\w+$'
select a from t where s like 'a\_b\%c'
select regexp_replace(s, '(\\w)n', '$1N') from t
select sum(m), avg(m), max(m) * 2, sum(m) / 3 from t
select sum(l), sum(a), sum(x), avg(a), avg(l) from t
select array_sort(collect_list(struct(a, b))) from t
select a, to_json(struct(a, b as q)), named_struct('x', a, 'y', s).y from t
select if(a is null, 'n', cast(a as string)) || '-' || coalesce(s, '') as j from t
select * from t where a = 1 union all select * from t where a = 2 union all select * from t where a is null
select a from (select a from t intersect select a from u) union all select v from n
(select a from t) intersect (select a from u) order by a limit 1
select a, b from t except select a, b from t where a > 1
select max(z) from (select a as z from t union all select c from u)
select a from t where a is not null order by b desc nulls last, s asc nulls first limit 2
select count(*) from t t1, t t2, t t3 where t1.a = t2.a and t2.a = t3.a
select t1.a, t2.b from t t1 inner join t t2 on t1.a = t2.a and t1.b < t2.b
select T1.A from T as T1 where t1.B in (10, 20)
select a from t where case when a > 1 then true else b > 5 end
select current_date() = current_date, a from t
select a as `select`, b as `group by` from t
select sum(a) as sum, count(*) as count from t
select date, count(*) from (select d as date from t) group by date
select year(date) as year, count(*) as count from (select d as date from t) group by year(date) order by year, count
select timestamp, value from (select ts as timestamp, a as value, s as key from t) where value > 1
select key, first, last, min, max from (select a as key, b as first, b as last, a as min, a as max from t)
select order_id, user, name, type, row, rows, percent, id from (select a order_id, a user, a name, a type, a row, a rows, a percent, a id from t)
select day, month, hour, minute, second, year from (select a day, a month, a hour, a minute, a second, a year from t)
select interval, position, overlay from (select a as interval, a as position, a as overlay from t)
select list[0], array[0] from (select array(a) as list, array(b) as array from t)
select end, start, status, text, date, time, level, comment, data, format, location, offset, first from (select a end, a start, a status, a text, a date, a time, a level, a comment, a data, a format, a location, a offset, a first from t)
select exists(xs, x -> x = 1), any(a > 1) from t group by xs
select b[0] from (select array(a) as b from t)
select cast(a as variant) from t
select try_sum(b), try_avg(b), mean(b), std(b), variance(a), bit_or(a), mode(a), kurtosis(b), skewness(b), regr_count(a, b) from t
select a, count(*) as n from t group by a having n > (select count(*) from n) - 1 order by n desc, a limit 1
select a, approx_percentile(b, 0.5) from t group by a
select sum(a) over (), sum(sum(a)) over () from t group by a
select rank() over (partition by s order by sum(b)), s from t group by s
with q as (select *, row_number() over (order by a, b) as rn from t) select a, rn from q where rn <= 2
with a as (select a from t), b as (select a as b from a) select * from a, b where a.a = b.b
with q as (select * from u) select q.a, x.a from q join q x on q.c = x.c
select `upper`(s) from t
select count(distinct *) from u
select sum(all a), count(all b) from t
select array_sort(array_agg(distinct a)) from t
select '\\', 'a\tb', 'q\'q', "q\"q", 'x\0y', '\x', 'a\\\\b', '%\%', '\141', '\u00e9', 'é', '日本', '😀'
select 'it''s', "say ""hi""", '''', 'a''''b'
select `a``b` from (select a as `a``b` from t)
select 1a from (select a as 1a from t)
select `1` from (select a as `1` from t)
select `_x`, `$y`, `z-1` from (select a as `_x`, a as `$y`, a as `z-1` from t)
select a from t where a=1--comment
select /* c1 */ a /* c2 */ from t -- end
select a from t;
select sum(a) from t where s = 'one' having sum(a) is not null
select a as a from t group by a
select a as A from t group by A having A > 1 order by A limit 1
select T.a as a, count(*) c from t T group by T.a having T.a is not null order by c desc, T.a limit 2
select a, count(*) from (select a, b from t) group by a having a is not null order by a
select a, b, grouping_id() as g from t group by cube(a, b)
select a, b, grouping_id(a, b) as g, grouping(b) as h, count(*) from t group by rollup(a, b) order by g, a, b limit 5
select coalesce(a, -1) as a, count(*) from t group by coalesce(a, -1)
select coalesce(a, -1) as a, count(*) from t group by a
select coalesce(a, -1) as z, count(*) from t group by z order by z limit 2
select b as a, a as b from t order by a, b limit 2
select a as x from t order by x, a, b limit 2
select a as x, b as a from t order by x desc, t.a, a limit 3
select max(b) as a from t group by a order by a limit 2
select max(b) as a from t group by a having a > 10
select max(b) as a, a as q from t group by a having a > 1
select a from t group by a order by a + count(*) desc limit 2
select a, max(b) mb from t group by a order by mb - a, a limit 3
select a + 1 as a from t group by a + 1 order by a limit 2
select a + 1 as a from t group by a order by a desc limit 2
select sum(a) filter (where a > 0) + count(*) as z from t
select s, a, sum(b) from t group by s, a having sum(b) > 5 and s like '%n%' and a + 1 > 1
select case when a > 1 then 'x' else 'y' end as k, count(*) from t group by case when a > 1 then 'x' else 'y' end having k = 'x'
select a, rank() over (partition by b order by count(*)) from t group by a, b
select a, sum(b) over w as z from t window w as (partition by a order by b), v as (order by a)
select sum(b) over (w) from t window w as (partition by a)
select a, count(*) over (partition by a order by b desc nulls last rows between 2 preceding and 1 preceding) z from t
select a, sum(b) over (order by a range between unbounded preceding and unbounded following) z from t
select a, avg(b) over (order by x range between 1.5 preceding and 2 following) z from t
select a, last_value(b) over (partition by a order by b) z, first_value(b, true) over (partition by a order by b) y from t
select a, lag(b, 1, -1) over (partition by a order by b) z, cume_dist() over (order by b) y from t
select count(*) from t where date_trunc('MONTH', ts) = timestamp'2020-01-01 00:00:00'
select * from t where d = date'2020-01-31' and ts >= '2020-01-01'
select d from t where d > current_date() - interval 100 years
select ts::date, ts::string, '5'::int + 1 from t
select not not bo, !bo from t
select a - -1 from t
select 3 - 2 - 1, 2 * 3 % 4, 7 / 2 * 2, 7 div 2 * 2, -7 % 3, 2 + 3 || 'x'
select 1 < 2 < true, 1 = 1 = true
select null is null, null = null, null <=> null, not null
select true and null or false, null or true
select a in (1, null), a not in (1, 2), a in (select v from n where v is not null) from t
select if(a > 1, 1, 2.5), case a when 1 then 'x' when null then 'n' else 'z' end, nullif(a, 2), nvl(s, 'none') from t
select xs[1 - 1], mp['k'], st.f + 1, array(st)[0].g, map('p', st)['p'].f from t where size(xs) > 0
select array(array(1, 2), array(3))[1][0], struct(struct(5 as y) as x).x.y
select named_struct('A', 1).a, struct(1, 2).col1, struct(a, b).b from t
select t.*, u.* from t left join u on t.a = u.a where u.a is null
select t.st.* from t
select st.*, a from t
select struct(*) from u
select struct(t.a, u.*) from t join u using (a)
select count(st.f), count(t.st.f) from t
select u.k as `key`, collect_list(struct(u.c, u.a))[0].c from u group by u.k
select sequence(1, a) from t where a is not null
select explode(sequence(1, a)) as e, a from t where a is not null
select explode(map('x', 1, 'y', 2)) as (k, v)
select e + 1 from (select explode(xs) as e from t)
select upper(e) from t lateral view explode(split(s, '')) x as e
select x.e, y.f from t lateral view outer explode(xs) x as e lateral view outer posexplode(xs) y as p, f
select t.a, q.* from t join (select a, max(c) from u group by a) q on q.a = t.a
select q.* from (select a, count(*) from t group by a having count(*) > 1) q
select `count(1)` from (select count(*) from t)
select * from (select a, sum(b) from t group by a order by sum(b) limit 2)
select 1 as x union select 2 union select 1
select 1 as x union all (select 2 union select 1)
select 1 as x except select 1 union all select 3
(select 1 as x) order by x
((select 1 as x))
select * from ((select 1 as x) union all (select 2)) q
select (select 1), (select 'a' union select 'a')
select exists (select 1 from n where v is null), not exists (select 1 from e)
select * from t where exists (select 1 from u where u.a = t.a) or a = 3
select * from t where a in (select a from u) or a in (select v from n) and b > 5
select 1 from t, u, n where t.a = u.a and u.a = n.v
select t.a from t, lateral (select u.c from u where u.a = t.a) q, n where n.v = t.a
select t.a from t left outer join u on t.a = u.a and t.b > 10
select t.a from t inner join u on t.a = u.a inner join u as u2 on u2.a = u.a
select x from (select a x from t) where x in (select a from u) order by x
select max(struct(b, a)).a from t
select a from t where struct(a, b) = struct(1, 10)
select a from t where (a, b) > (1, 5)
select sum(a) from t group by 1 + 1
select 'k', count(*) from t group by 1
select a, a as a2, count(*) from t group by 1, 2
select a, a, count(*) from t group by a
select s, s from t group by s, s
select a from t order by 1, b limit 3
select a, b from t order by b * -1, 1 limit 2
select distinct a as z from t order by z limit 2
select distinct a from t where a in (select distinct a from u) order by 1 limit 1
select * from range(5) limit 2 offset 3
select cast(null as int) as z, cast(1 as decimal), cast('a' as char(3)), cast(1 as long), cast(1 as short), cast(1 as byte), cast(1 as real), cast(1 as numeric(5,1)), cast('x' as binary)
select cast(struct(1) as struct<z: string>), cast(array(1) as array<double>), cast(map(1, 2) as map<string, string>)
select cast('2020-01-01 00:00:00' as timestamp_ltz), cast('2020-01-01' as timestamp_ntz)
select try_cast('x' as int), try_cast('1' as double)
select cast(named_struct('a b', 1) as struct<`x y`: int>)
select cast(a as string collate UNICODE) from t
select from_json('{"a":1, "b":[1,2]}', 'a INT, b ARRAY<INT>').b[1]
select from_csv('1,2', 'a int, b int'), schema_of_json('{"a":1}'), json_array_length('[1]')
select window(ts, '1 day').start, count(*) from t group by window(ts, '1 day')
select date_trunc('week', ts) w, count(*) from t group by 1 order by 1
select session_window(ts, '5 minutes') from t
select hash(*) from u
select coalesce(*) from u
select greatest(*) from (select 1 a, 2 b)
select mask('AbC'), luhn_check('8112189876'), rint(2.5), hypot(3, 4), e(), pi()
select current_catalog() is not null, current_database() = current_schema()
select ilike(s, 'ONE'), like(s, 'o%'), rlike(s, 'o') from t
select array_contains(array(1,2), 1) and true, size(array()), cardinality(xs) from t
select transform(xs, x -> case when x > 1 then x else a end) from t
select aggregate(xs, struct(0 as s, 0 as c), (acc, x) -> struct(acc.s + x as s, acc.c + 1 as c), acc -> acc.s) from t where a = 1
select transform(xs, x -> transform(xs, x -> x * 2)) from t
select exists(array(1, 2), v -> v in (2, 3))
select a from t where exists(xs, v -> v = a)
select count(distinct case when a > 1 then b end), count(distinct a, s) from t
select any_value(s) ignore nulls from (select s from t where s = 'one')
select percentile_approx(b, array(0.5, 0.9), 100), approx_count_distinct(a, 0.05) from t
select count_if(bo), bool_and(a > 0), max(named_struct('b', b)) from t
select to_date('2020-01-01'), to_timestamp('2020-01-01', 'yyyy-MM-dd'), date_format(d, 'E') from t
select trunc(d, 'YEAR'), trunc(d, 'Q'), add_months(d, -1), date_add(d, -1), datediff(d, d) from t
select unix_date(d), unix_micros(ts), to_unix_timestamp(ts), from_utc_timestamp(ts, 'Asia/Tokyo'), convert_timezone('UTC', 'Asia/Tokyo', ts_ntz) from (select *, ts::timestamp_ntz as ts_ntz from t)
select timestampadd(MONTH, 1, ts), dateadd(MINUTE, 5, ts), timestampdiff(DAY, ts, ts), datediff(WEEK, d, d) from t
select d - interval 1 month * 2, interval 2 days / 2, 2 * interval 1 hour from t
select interval '10' minute > interval '1' second, interval 1 year = interval 12 months
select string(1), boolean('true'), tinyint(1), float(1), binary('a'), date(ts) from t
select elt(1, 'a'), field from (select 1 as field)
select format_number(1234.5, 2), printf('%s', 'x'), substring_index('a.b.c', '.', 2), sentences('Hi there.'), space(2) || 'x'
select split('a1b2', '[0-9]'), split('a1b2', '[0-9]', 1), regexp_extract_all('a1b2', '([a-z])'), regexp_count('aab', 'a'), regexp_substr('abc', 'b'), regexp_instr('abc', 'c')
select nullifzero(0), zeroifnull(null), try_divide(1, 0), try_add(1, 2), div(7, 2), mod(7, 2)
select bround(2.5), round(2.567, 2), round(-1.5), ceil(1.1), ceiling(1.1), floor(-1.1), sign(-2), sqrt(4), cbrt(8), exp(0), degrees(0), sin(0)
select window, count(*) as n from t group by window(ts, '10 days', '5 days')
select session_window(ts, '5 minutes').end as e, count(*) from t group by session_window(ts, '5 minutes')
select count(*) as n, a % 2 as a from t v group by rollup(v.a, b)
select count(*, 1) as n from t
select sum(a) as n, a + 1 as k, b from t group by cube(a, b) having b is null
