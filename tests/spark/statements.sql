-- One statement a line, over the tables of test_sql.py.
select * from t
select * from t join u using (a)
select a, s, c from t left join u using (a)
select * from t full outer join u using (a)
select * from t right join u using (a)
select * from t semi join u using (a)
select * from t anti join u using (a)
select x.a from t as x(a, q, w, e, r, tt, y, i, o, p, z, bb) where q > 10
select a, count(*) from t group by a
select a as k, sum(b) as total from t group by k
select upper(s) as k, count(*) from t group by k
select upper(s) as s, count(*) from t group by s
select a + 1, count(*) from t group by a
select a, b, count(*) from t group by 1, 2
select a, b, count(*) from t group by all
select a, sum(b) + 1, max(s) from t group by all
select distinct a, b from t order by a
select distinct a from t order by a desc limit 2
select a, sum(b) from t group by a having sum(b) > 10
select a as x, sum(b) from t group by a having a > 1
select a as x, sum(b) from t group by a having x > 1
select a from t group by a having count(*) > 1
select count(*) from t having count(*) > 100
select 1 from t having max(a) > 1
select sum(b) from t group by a having max(s) = 'one' and a is not null
select a, sum(b) from t group by a order by sum(b) desc, a
select a from t group by a order by count(*) desc, a limit 2
select a, sum(b) as sb from t group by a order by sb limit 2
select a as b, sum(b) from t group by a order by b limit 3
select a as b, sum(b) from t group by a having b > 1
select a + 1, count(*) from t group by a + 1 order by a + 1 limit 2
select a, count(*) from t group by a order by 2 desc, 1 limit 1
select s from t order by a, b limit 2
select s from t order by a desc nulls first, b limit 2
select s as a from t order by t.a desc, b limit 2
select a + b as c from t order by c limit 2
select a + b as c from t order by c + a limit 2
select b as a from t order by a + 1 desc limit 1
select a + 1, b as a from t order by 1 desc limit 1
select * from t order by a, b limit 2
select a, b from t order by all limit 3
select a from t order by a limit 2 offset 1
select a, row_number() over (partition by a order by b) as rn from t
select a, sum(sum(b)) over (order by a) from t group by a
select count(*) filter (where a > 1) as n, sum(b) filter (where a > 1) as m, count(distinct a) filter (where b > 10) as k from t
select a from t intersect select a from u
select a from t intersect all select a from u
select a from t except select a from u
select a from t union all select c from u order by a limit 3
select a from t union select c from u intersect select c from u
select a from t union all select a from u order by 1 desc limit 2
select * from values (1), (2) v(x) where x > 1
select 1 as a, 'x' as b, null as c
with c as (select a, b from t where b > 10) select * from c
with c as (select a from t), d as (select a from c where a > 1) select * from d join c using (a)
with c as (select 1 as x) select * from (with c as (select 2 as x) select * from c), c
with t as (select a from t where a > 1) select * from t
select q.x from (select a, b from t) q(x, y)
select a, (select sum(c) from u where u.a = t.a and u.c > 100) from t
select * from t where b = (select max(b) from t)
select * from t where a in (select a from u)
select * from t where a not in (select v from n)
select * from t where a not in (select v from n where v is not null)
select * from t where a not in (select v from e)
select * from t where exists (select 1 from u where u.a = t.a)
select * from t where not exists (select * from u where u.a = t.a and u.c > t.b)
select * from t where exists (select * from e)
select * from t where a in (select a from u where c in (select c from u where k = 'q'))
select * from t where exists (select 1 from u where u.a = t.a and exists (select 1 from n where n.v = u.a))
select a from t where a > (select min(v) from n) or b in (select c from u)
select a from t order by (select max(v) from n), a limit 2
select t.a from t join u on t.a = u.a and u.c > (select min(c) from u)
select a, sum(b) from t group by a having a in (select v from n)
select a, v.e from t lateral view explode(xs) v as e where v.e > 1
select a, e from t lateral view outer explode(xs) v as e
select a, p, e from t lateral view posexplode(xs) v as p, e
select a, e, f from t lateral view explode(xs) v as e lateral view explode(array(e, e * 10)) w as f
select a, col from t lateral view explode(xs) v
select t.a, explode(xs) from t
select a, q.c from t, lateral (select c from u where u.a = t.a) q
select a, q.m from t join lateral (select max(c) as m from u where u.a = t.a) q
select a, x.col from t, lateral explode(xs) x
select a, x.y from t, lateral explode(xs) x(y)
select a, b, count(*) from t group by rollup(a, b)
select a, b, count(*) from t group by grouping sets ((a, b), (a), ())
select a, b, count(*) from t group by a, b with rollup
select a, count(*), grouping(a), grouping_id(a) from t group by rollup(a)
select count(*) as n, a, b from t group by grouping sets ((a), (b))
select a as k, sum(b) from t group by rollup(a) having sum(b) > 10
select st.* from t
select a, sum(b) as q, q + 1 as q2 from t group by a
select count_if(a > 1), approx_count_distinct(a) from t
select cust, date_trunc('month', day) as day, sum(amt) from ord group by cust, day
select s, count(*) from t group by s order by count(*) desc, s desc nulls last limit 1
select x.a, x.v from (t join n on t.a = n.v) x
select a, b from t where not (a = 1 and b = 10)
select x.k from u x where x.c = (select max(y.c) from u y where y.k = x.k)
select (select a from u where a = 1) as z
select a as k, b, count(*) from t group by a, b grouping sets ((t.a), (b, a))
select a as k, b as j, count(*) from t group by rollup(a, b)
select a as k, b as j, count(*) as n from t group by cube(b, a)
select a, sum(a) as p, count(*) as n from t group by rollup(a) having sum(a) > 1
select a from t where exists (select a from u where u.a = t.a group by a having count(*) > 1)
select a from t where exists (select count(*) from u where u.a = t.a group by a having count(*) > 1)
select a, (select k from u where u.a = t.a order by c limit 1) z from t
select a, (select upper(k) from u where u.a = t.a order by c desc limit 1) z from t
select a from t where a in (select distinct a from u where u.c > t.b)
select a from t where exists (select * from u join n on u.a = n.v where u.a = t.a)
select a from t where exists (select * from (select * from u where c > 100) q where q.a = t.a)
select a from t where exists (select * from u lateral view explode(array(a)) z as q where q = t.a)
select a from t where exists (select 1 from u where u.a = t.a order by c limit 1)
select a from t where exists (select k, max(c) as m from u where u.a = t.a group by k order by m)
select a from t where exists (select distinct k from u where u.a = t.a)
select a from t where a in (select max(a) from u where u.c > t.b group by k)
select a from t where a in (select a from u z(a, b, c) where z.b > t.b)
select a from t where exists (with q as (select * from u) select 1 from q where q.a = t.a)
select a, q.n from t, lateral (select count(*) as n from u where u.a = t.a having count(*) > 0) q
select a, q.c from t, lateral (select c from u where u.a = t.a order by k, c limit 1) q
select a, q.x from t, lateral (select c from u where u.a = t.a) q(x)
select a from t where exists (select 1 from u where u.a = t.a and u.c = (select max(c) from u i where i.a = u.a))
select a from t where a = (select max(u.a) from u, n where u.a = n.v and u.a = t.a)
select a from t where (select sum(c) from u where u.a = t.a group by u.a) > 100
select (select max(c) from u where u.a = t.a) m, count(*) from t group by 1
select a from t group by a having (select count(*) from u where u.a = t.a) > 1
select a, count(*) from t group by a having exists (select 1 from u where u.a = t.a)
select u.a from u where u.c > (select avg(c) from u) and u.a in (select a from t where b is not null)
select a from t where (a in (select a from u)) = true
select count(*) from t where (select true)
select a, max(b) filter (where s = 'one') as z from t group by a
select b as a, a + 1 as k, count(*) as n from t group by b, a + 1 order by a + 1 limit 2
select b as a, a as b, count(*) as n from t group by t.a, t.b order by a desc, b limit 2
select a, v.c from t lateral view explode(xs) v as c where exists (select 1 from u v where v.a = t.a and v.c > 100)
select a as j, b + 1 as k, count(*) as n from t group by j, k order by k desc, j limit 3
select a, a + 1 as k, count(*) as n from t group by a, a + 1 order by k desc limit 2
select upper(v.s) as s, count(*) from t v group by s
select a, (select count(*) from (select distinct k from u where u.a = t.a) q) n from t
