-- One expression a line, over the table t of test_sql.py.
1
1L
1S
1Y
1.5
1.50
0.05
.5
5.
1e3
1.5e-2
1.5D
1.5F
2.50BD
1E3BD
2147483647
2147483648
-2147483648
9223372036854775807
-9223372036854775808
9223372036854775808
12345678901234567890.123
-1.5
-1.5D
- 1
+a
~a
'a\'b\n\d\\d\%\_'
'a''b'
'a' 'b'
"dq"
"d'q"
r'\d+'
'\u0041\101'
''
X'1F0a'
X'1'
date'2020-01-01'
null
true
interval 1 day
interval '1' day
interval 2 weeks
interval '1.5' second
interval 5 milliseconds
d + interval 1 day
d + interval 1 month
d - interval '90' day
ts + interval 2 hours
d + interval 1 day + interval 1 month
d + 1
d - 1
d - date'2020-01-01'
a + b
a - b * 2
a / b
m / 3
m * m + 1
a % 2
b div 3
a || s
s || 'x' || 1
a & 3 | 4 ^ 1
1 << 2 + 1
b >> 1
b >>> 1
a = b
a == b
a != b
a <> b
a <=> b
a < b = true
a > 1 and b < 20 or s = 'one'
not a = 1
! a = 1
not (a > 1)
a is null
a is not null
bo is true
bo is not true
bo is not false
bo is unknown
a is distinct from b
a is not distinct from b
a between 1 and 2
a not between 1 and 2
a in (1, 2)
a not in (1, null)
a in (1, 2.5)
s like 'o%'
s not like 'o%'
s like 'a\\_b\\%c'
s like 'a/_b/%c' escape '/'
s ilike 'TWO'
s rlike '^o'
s regexp '[a-z]+'
s not rlike '^o'
regexp_extract(s, '([a-z])(.)', 2)
regexp_replace(s, '[a-z]', '*')
regexp_like(s, 'o')
case when a > 1 then 'x' when a = 1 then 'y' else 'z' end
case a when 1 then 'x' when 2 then 'y' end
case when a > 1 then 1 else 2.5 end
if(a > 1, b, null)
coalesce(a, b, 0)
nvl(a, 0)
nvl2(a, 1, 2)
nullif(a, 1)
ifnull(a, 3)
cast(a as string)
cast(s as varchar(2))
cast(m as decimal(12, 3))
cast(x as bigint)
cast('2020-01-01' as date)
cast(d as timestamp)
cast(ts as timestamp_ntz)
cast(xs as array<bigint>)
cast(st as struct<f: bigint, g: string>)
cast(mp as map<string, double>)
cast('1' as tinyint)
cast(1 as boolean)
a::double
try_cast(s as int)
int('3')
double(a)
string(a)
date('2020-01-01')
timestamp('2020-01-01 00:00:00')
decimal('3')
bigint(a)
extract(year from d)
extract(DAYOFWEEK from d)
date_part('month', d)
year(d) * 100 + month(d)
dayofweek(d)
date_add(d, 3)
date_sub(d, 3)
dateadd(day, 3, d)
date_add(month, 1, d)
timestampadd(hour, 2, ts)
datediff(d, date'2020-01-01')
datediff(day, date'2020-01-01', d)
date_diff(d, date'2020-01-01')
months_between(d, date'2020-01-01')
add_months(d, 1)
last_day(d)
next_day(d, 'MO')
trunc(d, 'month')
date_trunc('month', ts)
date_format(ts, 'yyyy-MM-dd HH:mm')
to_date('31/12/2020', 'dd/MM/yyyy')
to_timestamp('2020-01-01 00:00:00')
unix_timestamp(ts)
from_unixtime(0, 'yyyy')
weekofyear(d)
make_date(2020, 1, 2)
log(2, 8)
log(8)
ln(8)
log10(100)
log2(8)
pow(2, 3)
round(x, 1)
bround(2.5, 0)
ceil(m)
floor(m)
ceil(m, 1)
abs(a)
sign(a)
mod(a, 2)
greatest(a, b)
least(a, b)
hash(a, s)
xxhash64(a, s)
substring(s, 2, 2)
substring(s, 2)
substr(s, -2)
substring(s from 2 for 1)
substr(s, 1, 2)
left(s, 2)
right(s, 2)
trim('  x ')
trim(both 'o' from s)
trim(leading 'o' from s)
trim(trailing from s)
trim('o', s)
ltrim('o', s)
position('n' in s)
locate('n', s)
instr(s, 'n')
overlay(s placing 'XX' from 2 for 1)
overlay(s placing 'XX' from 2)
concat(s, '-', a)
concat_ws(',', s, 'b')
upper(s)
UPPER(S)
initcap(s)
lpad(s, 5, '*')
split(s, 'n')
split(s, 'n')[0]
split_part('a,b', ',', 2)
replace(s, 'o', '0')
translate(s, 'on', '12')
reverse(s)
repeat(s, 2)
char_length(s)
length(s)
ascii(s)
char(65)
chr(65)
decode(a, 1, 'one', 2, 'two', 'other')
base64(cast(s as binary))
hex(a)
md5(s)
sha2(s, 256)
format_string('%d-%s', a, s)
format_number(m, 1)
mp['k']
mp['k'] + 1
st.f
st.g
t.st.f
st['f']
t.a
t.mp.k
size(xs)
array(1, 2)[1]
element_at(mp, 'k')
element_at(array(1, 2), 1)
map('a', 1, 'b', 2)
struct(a, b)
struct(a as p, b + 1 as q)
named_struct('p', a, 'q', b).q
struct(a as p).p
array_contains(xs, 1)
transform(xs, x -> x + 1)
transform(xs, (x, i) -> x * i + a)
transform(xs, X -> x + 1)
filter(xs, x -> x > 1)
exists(xs, x -> x is null)
forall(xs, x -> x > 0)
aggregate(xs, 0, (acc, x) -> acc + coalesce(x, 0))
aggregate(xs, 0, (acc, x) -> acc + coalesce(x, 0), acc -> acc * 2)
reduce(xs, 0, (acc, x) -> acc + coalesce(x, 0))
transform(array(struct(1 as f)), s -> s.f)
transform(array(array(1,2)), r -> transform(r, x -> x + size(r)))
map_filter(mp, (k, v) -> v > 1)
transform_values(mp, (k, v) -> v + 1)
zip_with(xs, xs, (p, q) -> p + q)
array_sort(xs, (p, q) -> case when p < q then 1 when p > q then -1 else 0 end)
array_sort(xs)
sort_array(xs)
sort_array(xs, false)
array_join(array('a','b'), ',')
array_distinct(array(1,1))
flatten(array(array(1), array(2)))
sequence(1, 3)
sequence(date'2020-01-01', date'2020-03-01', interval 1 month)
map_keys(mp)
map_from_arrays(array('a'), array(1))
to_json(st)
from_json('{"a":1}', 'a int')
from_json('{"a":1}', 'a int').a
get_json_object('{"a":1}', '$.a')
array_max(xs)
arrays_zip(xs, xs)
current_date = current_date()
isnull(a)
isnotnull(a)
isnan(x)
nanvl(x, 0)
equal_null(a, b)
try_add(a, b)
try_divide(a, 0)
typeof(a)
date'2020-01-31' + interval '1' month
bit_count(a)
shiftleft(a, 1)
conv('ff', 16, 10)
bin(a)
factorial(5)
width_bucket(x, 0, 10, 5)
a = 1 and b is not null or not bo
(a + b) * 2
((a))
`a`
`t`.`a`
A
T.A
a between 1 and 2 and b > 3
not a in (1, 2)
s = 'one' is true
2 - -1
2 -1
a -1
soundex(s)
levenshtein(s, 'one')
nvl(st.f, 0) + 1
elt(2, 'a', 'b')
find_in_set('b', 'a,b')
unhex('41')
str_to_map('a:1,b:2')
str_to_map('a=1;b=2', ';', '=')
date_from_unix_date(1)
timestamp_seconds(1)
timestamp_millis(1)
to_char(a, '99')
to_number('12', '99')
try_to_timestamp('x')
contains(s, 'n')
startswith(s, 'o')
endswith(s, 'e')
try_element_at(xs, 9)
array_position(xs, 2)
slice(xs, 1, 2)
array_repeat(a, 2)
concat('a', null)
'a' < 'b'
date'2020-01-01' < '2020-02-01'
a = '1'
1 = 1.0
cast(1.5 as decimal(2,1)) + 0.25
interval 1 day * 2
interval '-1' day
interval '1 day 2 hours'
cast('1' as interval day)
map('a', 1)['a']
-(1) as z
-a as z
timestamp'2020-01-01 01:02:03' as z
timestamp'2020-01-01 01:02:03+05:00' as z
timestamp_ntz'2020-01-01 01:02:03' as z
interval 1 day 2 hours as z
interval '1 02:03:04' day to second as z
ts - timestamp'2020-01-01 00:00:00' as z
(a, b) in ((1, 10), (2, 20)) as z
s like any ('o%', 'T%') as z
s not like all ('o%', 'T%') as z
s not like any ('o%', 'T%') as z
timestampdiff(month, ts, timestamp'2024-01-01 00:00:00') as z
pmod(-a, 2) as z
position('n', s) as z
(a, b) as z
-a * b as z
-interval 1 day as z
cast(interval '1-2' year to month as string) as z
cast(interval -3 months as string) as z
cast(interval 1 year 2 months as string) as z
cast('x' as string) || 1
try_element_at(xs, 1)
(a in (1)) = true
