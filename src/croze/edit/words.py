"""Words that are common in source code: a slip that makes one of another is none.

Counted over the Python standard library and other packages; the most frequent parts of identifiers.
"""

COMMON = frozenset(
    """
abc able abort about above abs absent absolute abspath abstract accept acceptable accepted
accepting accepts access accessed accessible accessing according account accumulate aclose
across act action actions active actual actually adapter add added adding addini addition
additional addoption addr address addresses adds adjust advance advanced advantage aenter aexit
affect affects after afterwards again against agreed agreement ahead aiter algorithm alias
aliases align alive all allocate allow allowed allowing allows almost alone along alpha already
also alt alternate although altsep always ambiguous among amount analysis analyze analyzed
analyzer anchor and anext ann annotate annotated annotation anonymous another ansi answer any
anyio anymore anything anyway anywhere apache apart api app appear appears append appended
appending apple applicable applied applies apply applying approach arbitrary arch archive are
aren arg argname argparse argparsing args argument arguments argv arising around array arrow
ascii asdict ask asked assert assertion assign assigned assignment assigns associated assume
assumed assumes assuming assumption ast async asyncio atomic attach attached attempt attempted
attempting attempts attr attribute attributes attrs audit auth author authors auto automatic
available avg avoid avoids await awaitable aware away back backend background backport backward
backwards bad bar bare base based basename bases basic basically basis batch baz because become
becomes been before begin beginning begins behave behaves behavior behaviour behind being belong
belongs below best beta better between beyond bgcolor big bin binary bind binding bisect bit
bits black blank blob block blocked blocking blocks blue bodies body bogus bold bom bool boolean
booleans bootstrap border both bother bottom bound boundaries boundary bounds box bpo brackets
branch branches break breaking breaks broken browser bsd buf buffer buffered buffering buffers
bufsize bug bugs build builder building builds built builtin builtins bunch but byte bytearray
bytecode bytes cabc cache cached caches caching calculate calculated call callable callables
callback callbacks called callee caller callers calling calls came can cancel candidate
candidates cannot canonical capture captured captures capturing care careful carriage carries
carry case cases casing cast cat catch catching category caught cause caused causes causing ceil
cell cells center cert certain chain chains chance change changed changes changing channel
channels char character characters chars charset chdir check checkable checked checker checkers
checking checks child children chmod choice choices choose chosen chr chunk chunks circle
circular cjk claim clamp class classes classvar clean cleanup clear cli click client clients
clock clone close closed closes closest closing closure cls cmd cmdline cmp code codecs
codepoint codes coerce coercion col collapse collect collected collecting collection collector
colon color colors column columns com combine combined combining come comes coming comma command
commands commas comment comments commit common commonly comp compact compare compared compares
comparing comparison compat compatible compile compiled compiler compiling complete completed
completely completion complex complexity compliance compliant component components compose
compress compressed compute computed computing concat concepts concrete concurrent cond
condition conditions config configure configured conflict conflicts conftest confusing connect
connected connecting connection consider considered consistent consisting consists console const
constant constants constraint construct constructs consume consumed consumes contain contained
container containers containing contains content contents context contextlib contexts continue
contract control controls convenient convention conversion convert converted converting converts
cookie cookies copied copies copy copying copyright core coroutine correct correction correctly
correspond cost could couldn count counter counting counts covariant cover coverage covered
covers cpu cpython crash create created creates creating creation crlf cross css ctrl ctx ctypes
cur curdir current currently cursor custom customize cut cwd cyan cycle cycles cyclic daemon
damages darwin dash data database dataclass date datetime day dead deal dealing debug debugging
dec decide decimal decl declare declared decode decoded decoder decoding decorated decorator
decorators dedent dedicated deep deepcopy def default defaults defer deferred define defined
defines defining definitely definition defn defs del delattr delay delegate delete deleted
delimiter delitem delta denied dep depend dependency dependent depending depends deprecated deps
depth deque derive derived desc describe described describing descriptor designed desired
desktop despite dest detail detailed details detect detected detection detects determine
determined determines dev device devnull dict dictionary dicts did didn diff differ difference
different differs difficult digest digit digits dim dir direct direction directive directly
directory dirname dirs dirty dis disable disabled disables disabling disallow discard discarded
discussion disk dispatch display displayed dist distinct distribute div divide division divmod
dll doc docs docstring docstrings doctest document documented documents does doesn doing domain
don done dont dot dots dotted double down drive drop dropped drops dst duck due dummy dump dumps
dunder dup duplicate duplicates duration during dynamic each eager eagerly earlier early easier
easily east easy echo edge editor effect effective effects efficient effort egg eight either
elapsed element elements elif ellipsis else elsewhere email emit emits emitted emoji empty
enable enabled enables enclosing encode encoded encoder encoding encodings encounter end ended
endian ending ends endswith enforce engine enough ensure ensures enter entered entering entire
entirely entity entries entry enum enumerate enums env environ eof epoch equal equality equals
equivalent erase erased err errno error errorcodes errors escape escaped escapes escaping
especially etc eval evaluate evaluated evaluating evaluation even event events eventually ever
every everything exact exactly example examples exc exceed exceeded exceeds except exception
exceptions excinfo exclude excluded excluding exclusive exe exec execmodel execnet executable
execute executed executing execution exhausted exist existence existing exists exit exited
exiting exits exp expand expanded expanding expandtabs expandtype expanduser expansion expect
expected expecting expects expensive explicit explicitly export exported exports expose exposed
expr express expressed expression exprs ext extend extended extends extension extensions
external extra extract extracted extracts extras face fact factory fail failed failing fails
failure failures fake fall fallback fallbacks falling falls false family fancy far farm fast
faster feature features feed fetch few ffff field fields fight figure file filename filenames
fileno files filesystem fill filled fills filter filtered filtering filters final finalize
finally find finder finding finditer finds fine finish finished finite firm first fit fix fixed
fixes fixture fixtures fixup flag flags flat flatten flavor flexible float floating floats floor
floordiv flow flush fmt fname fnmatch fold folded folder folding follow followed following
follows foo footer for forbidden force fork form formal format formats formatted formatter
formatting former forms forward forwarded forwards found four fraction fragment fragments frame
frames framework free freeze fresh from fromkeys front frozen frozenset fsdecode fspath full
fullmatch fullname fully func funcname function functions functools further future garbage
gateway gen general generally generate generated generates generating generation generator
generators generic generics get getattr getcwd getenv getframe getgroup getini getitem getline
getopt getoption gets getstate getter gettext getting getvalue git github give given gives
giving glob global globals gmt gnu goes going good google got grained granted graph greater
green grid group groupdict groups guarantee guaranteed guarantees guard guards guess guide guido
hack had half hand handle handled handler handlers handles handling happen happened happens
happy hard has hasattr hash hashable hashes hashlib hasn have haven having head header headers
heading heap heavy heel height held hell hello help helper helpers helpful helps hence here
hereby hex hexdigest hidden hide hierarchy high higher highest highlight hint hints historic
historical history hit hold holds hole home hook hookimpl hooks horizontal host hostname hot
hour hours how however html http https httpx human hyphen hyphens hypothesis idea ideally
idempotent ident identical identified identifier identify identity idle idna ids idx iff ignore
ignorecase ignored ignores ignoring illegal image immutable imp impl implement implements
implicit implicitly implied implies import important imported importing importlib imports
impossible improve inc include included includes including inclusive incoming incomplete
incorrect increasing increment indent indented index indexed indexes indexing indicate indicated
indicates indicating indicator indices indirect indirectly individual inf infer inference
inferred infinite infinity info infos inherit inherited inherits ini init initial initialize
initially inject inline inner input inputs insert inserted insertion inside inspect inspection
inspired inst install installed instance instances instead int integer integers integral
intended interact interested interface interfaces internal internally internals interpret
interrupt interval into introduced ints invalid invalidate invariant inverse invert invocation
invoke invoked invoking involve ior isabs isatty isclass isdigit isdir isfile isinstance islice
isn iso ispytest isreg issubclass issue issues italic item items iter iterable iterate iterating
iteration iterations iterator iterators itertools its itself jinja join joined json jupyter just
justify keep keeping keeps kept kernel key keyboard keyed keys keyword keywords kill kind kinds
know knowledge known knows kwarg kwargs kwds label labels lambda lang language large larger last
late later latest latin latter law layer layout lazily lazy lead leading leaf least leave leaves
leaving left legacy legal len length lengths less let lets letter letters level levels lexer lhs
liable lib libraries library librt license licensed licenses lift light like likely limit
limitation limited limits line linear linecache lineno lines link linked links linux list
listdir listed listing lists literal literals little live ljust load loaded loader loading loads
loc local locale localhost locals locate located location locations lock log logger logging
logic logical login logreport logs long longer longest look looked looking looks lookup lookups
loop loops lord lot low lower lowercase lowest lru lstat lstrip lvalue lvalues mac machine
machinery made magenta magic main maintain maintained major make makedirs makefile makes making
malformed managed manager mandatory manner manual manually many map mapped mapping mappings maps
mark markdown marked marker markers marking marks markup mask master match matched matches
matching math matter max maximum maxsize maxsplit may maybe mean meaning meaningful means meant
measure measured mechanism media meet member members memo memory memoryview merge merged message
messages meta metaclass metadata metavar meth method methods micro microsoft mid middle might
migration mimics min minimal minimum minor minus minutes mirror misc mismatch missing mix mixed
mixin mkdir mock mod mode model models modes modified modifier modify modifying modname module
modules moment monkey month more most mostly move moved moves moving mozilla mpl mro msg mtime
much mul multi multiline multiple must mutable mutate mutated mutually mypy mypyc name named
namedtuple names namespace namespaces naming nan nargs narrow narrowed native nbytes near
nearest necessary need needed needs neg negative neither nested nesting net network never new
newer newline newlines newly newtype next nice nicer night node nodeid nodes non none nonlocal
noqa nor normal normalize normalized normally normcase normpath not notation note notes nothing
notice now nul null num number numbers numeric obj object objects obtain obtained obvious occur
occurred occurrence occurs odd off offset offsets often okay old older oldest omit omitted once
one ones only onto opaque open opened opening operand operands operate operating operation
operations operator operators opposite ops opt optimize optimized option optional optionally
options opts ord order ordered ordering ordinary org orig origin original originally other
others otherwise our ourselves out outcome outcomes outer outermost output outputs outside over
overall overflow overhead overlap overlaps overload overloaded overloads overridden override
overrides overriding overwrite own owner pack package packages packaging pad padded padding page
pager pair pairs panel paragraph parallel param parameter parameters params paramspec pardir
parent parents parse parsed parser parsers parses parsing part partial partially particular
partition parts party pass passed passes passing password past pat patch patched patches path
pathlib pathname paths pathsep pattern patterns pdb peek pending people pep peps per percent
perf perform performed performing performs perhaps period permission permit person phase pick
pickle pickling pid piece pieces pip pipe pkg place placed places plain platform platforms
please pluggy plugin plugins plural plus point pointer pointing points policy pool pop popen
popleft populate populated port portion portions pos position positional positions positive
positives posix possible possibly post potential pow power pprint practice pragma pre precedence
preceding precise precision predicate prefer preference preferred prefix prefixed prefixes
prepare prepend presence present preserve preserved preserves preserving pretend pretty prev
prevent prevents previous previously primarily primitive print printable printed printer
printing prints prior priority private probably problem problems process processed processes
processing produce produced produces producing product profile prog program programs progress
prohibit prohibited project projects promote prompt propagate propagated proper properly
properties property proto protocol protocols provide provided provider provides providing
proxies proxy pseudo psf public pull pure purely purpose purposes push put pwd pyc pydantic
pygments pyi pylint pyproject pypy pyright pytest python quadratic qualified qualname query
question queue quick quickly quiet quit quite quote quoted quotes race radd raise raised raises
raising random range ranges rare rate rather ratio raw reach reachable reached read readable
reader reading readline readlines readonly reads ready real really realpath reason reasonable
reasons rebuild receive received receives recent recognize recognized record recorded records
recover recurse recursion recursive red redirect redirects reduce redundant reed ref refer
reference referenced references refers reflect refresh refs regardless regex regexp region
register registered registry regular reject rejected rel related relative relatively release
released releases relevant relies reload relpath rely remain remainder remaining remains
remember remote removal remove removed removes removing rename renamed render renderable
rendered rendering renders rep repeat repeated repeatedly repl replace replaced replaces
replacing report reported reporter reporting reports repository repr represent represents req
request requested requests require required requires requiring reraise res reserved reset
resolution resolve resolved resolver resolves resolving resource resources respect respective
response responses rest restore restrict restricted result resulting results ret retain retries
retrieve retrieved retry return returned returning returns reuse reused reveal reverse reversed
rewrite rfc rfind rgb rhs rich rid right rights rmul root rootpath roots ror round rounded
routine routines row rows rpartition rsplit rst rstrip rsub ruff rule rules run runner running
runs runtest runtime rvalue safe safely safety same sanity satisfied satisfy save saved say says
scalar scale scan scanning schema scheme schemes scope scoped scopes screen script scripts sdk
search searched searches second seconds section sections security see seed seek seekable seem
seems seen sees segment segments select selected selection selector self semanal semantic
semantics send sending sends sense sensible sensitive sent sentinel sep separate separated
separately separator separators seq sequence sequences ser serialize serialized serializer
series server servers service session set setattr setdefault setitem sets setstate settable
setter setting settings setup setuptools several sha shadow shall shallow shape share shared
shell shift short shortcut shorter should shouldn show showing shown shows shutdown shutil side
sift sig sight sign signal signals signature signatures signed silent silently similar similarly
simple simpler simplest simplified simplify simply since single singleton site situation
situations size sized sizes skip skipped skipping skips slash slashes sleep slice slightly slot
slots slow slower small smaller snapshot sock socket sockets soft software solution some someone
something sometimes somewhat somewhere soon sort sorted sorting source sources space spaces span
spans spawn spec special specific specified specifier specifiers specifies specify specifying
specs speed split splitext splitlines splits splitting spurious square src sse ssl stable stack
stacklevel stale standard star starred start started starting starts startswith startup stash
stat state statement statements states static statically statistics stats status stay std stderr
stdin stdlib stdout stem step steps still stmt stop stopped stops storage store stored stores
storing str strategy stream streaming streams strerror strict strictly string strings strip
stripped stripping strong struct structural structure structures stub stubs stuff style styles
sub subclass subclassed subclasses subject submodule subprocess subsequent subset substitute
subtract subtype subtypes success successful such sufficient suffix suffixes suggestion suitable
suite sum summary sun super superclass supertype supplied support supported supporting supports
suppose supposed suppress suppressed sure switch sword sym symbol symbolic symbols symlink
symlinks sync syntax synthetic sys sysconfig system systems tab table tables tabs tag tagged
tags tail take taken takes taking target targets task tasks tcp team teardown tell tells temp
tempfile template templates temporary term terminal terminals terminate terminated terminator
terms test tested testing tests text textwrap than that the their them theme themselves then
theory there therefore these they thing things think third this those though thread threading
threads three threshold through throw thus tied tight time timedelta timeout timer times
timestamp timezone timing tip title tls tmp todo together token tokenize tokens toml too tool
toolkit tools top toplevel total towards trace traceback tracebacks tracing track tracking
tracks trailing transfer transform translate translated translator transport traverse traverser
treat treated treats tree trick tricky tried tries trigger triggered trim trimmed trip triple
trivial true truediv truncate truncated trust try tryfirst trying trylast tty tup tuple tuples
turn turned turns tvar tvars twice two txt typ type typed typeddict typeinfo typeops types
typeshed typevar typevars typical typically typing uid unable unanalyzed unary unbound unbounded
unchanged undefined under underline underlying underscore understand undo unexpected unhandled
unicode unimported union unions unique unit unittest universal unix unknown unless unlike
unlikely unlink unpack unpacked unregister unrelated unsafe unset until untyped unusable unused
unwrap unwrapped update updated updates updating upon upper uppercase uri url urllib urls usable
usage use used useful user username users uses using usr usual usually utc utf util utilities
utility utils uuid val valid validate validated validating validation validator validators value
values var varargs variable variables variadic variance variant variants various varnames vars
ver verbose verbosity verify version versions vertical very via view virtual visible visit
visited visitor wait waiting walk want wanted wants warn warning warnings warranties was wasn
way ways wcwidth weak weakref web weed weight weird well were what whatever wheel when whence
whenever where whether which while white whitespace who whole whose why wide wider width widths
wiki wikipedia wildcard will win window windows wins with within without won word words work
workaround worker workers working works world worth would wrap wrapped wrapper wrappers wrapping
wraps writable write writelines writer writes writing written wrong wrote www xdg xdist xfail
xml xor xxx yaml year yellow yes yet yield yielded yielding yields you your zero zip
    """.split()  # noqa: SIM905 - a list of 2,900 literals would be as many lines
)
