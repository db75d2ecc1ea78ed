/* The world "prover" (docs/prover.md) in Prolog: proofs over a knowledge base, as a world of
 * docs/prolog.md. It offers the same successors in the same order as the built-in one, up to the
 * names of variables. */
:- module(prover, [env_spec/1, reset/2, actions/2, step/4, observation/2]).

:- world_option(data, none).       % folder of facts.pl, rules.pl, train.txt; none: kb/1 below
:- world_option(labels, both).     % both, positive or corrupted
:- world_option(follow, 1).        % 0: states without a choice are shown as well
:- world_option(observe, tokens).  % or count: the number of goals and of successors alone

:- dynamic fact/1, by_rule/3, train/2, known/3, constant_name/1, predicate_name/1, constant/2,
       predicate/2, constants/1, queries/1, set/2.

kb(p(a,b)).
kb(p(b,c)).
kb(q(b,d)).
kb((r(A,B) :- p(A,H), q(H,B))).
kb((r(A,B) :- p(A,H), r(H,B))).
kb((s(A,B) :- r(B,A))).
ask(r(a,d)).
ask(s(d,a)).

/* --- the knowledge base --------------------------------------------------------------------- */

/* Facts of p/2 are clauses of p/2 in a module of their own, where both arguments are indexed, and
 * fact(p(X,Y)) calls them. A rule is by_rule(Head, Goals, Rest): its body as a list that ends with
 * Rest. */
load :-
    forall(member(O, [labels, follow, observe]),
           ( world_option_value(O, V), assertz(set(O, V)) )),
    nb_setval(queries, 0),
    world_option_value(data, Data),
    (   Data == none
    ->  forall(kb(Clause), add(Clause)), forall(ask(Query), add_query(Query))
    ;   prolog_load_context(directory, Here),
        absolute_file_name(Data, Folder, [relative_to(Here)]),
        clauses(Folder, '/facts.pl'), clauses(Folder, '/rules.pl'),
        lines(Folder, '/train.txt', add_query),
        forall(( member(Split, ['/valid.txt', '/test.txt']), there(Folder, Split) ),
               lines(Folder, Split, add_known)),
        (   there(Folder, '/domains.txt')
        ->  throw(error(domain_error(folder_without_domains, Folder), _))
        ;   true
        )
    ),
    nb_getval(queries, Queries), assertz(queries(Queries)),
    setof(C, constant_name(C), Constants),
    forall(nth1(I, Constants, C), assertz(constant(C, I))),
    length(Constants, Count), assertz(constants(Count)),
    setof(P, predicate_name(P), Predicates),
    append(Predicates, [true, false, endf], Names),
    forall(nth1(I, Names, P), assertz(predicate(P, I))).

there(Folder, File) :- atom_concat(Folder, File, Path), exists_file(Path).

opened(Folder, File, S, Do) :-
    atom_concat(Folder, File, Path),
    setup_call_cleanup(open(Path, read, S, [encoding(utf8)]), Do, close(S)).

clauses(Folder, File) :-
    opened(Folder, File, S,
           ( repeat, read(S, Term), ( Term == end_of_file -> ! ; add(Term), fail ) )).

/* A query is a line, with or without a dot; what follows the dot counts for nothing. */
lines(Folder, File, Do) :-
    opened(Folder, File, S,
           ( repeat, line_count(S, N), read_string(S, "\n", "\r", End, Line),
             (   catch(query(Line, Do), _, fail)
             ->  true
             ;   format(atom(Text), '~w~w:~d: no query: ~s', [Folder, File, N, Line]),
                 throw(error(syntax_error(Text), _))
             ),
             End == -1, ! )).

query(Line, Do) :-
    term_string(Query, Line),
    ( Query == end_of_file -> true ; compound(Query), call(Do, Query) ).

add((:- _)) :- !.
add((Head :- Body)) :-
    !,
    goals(Body, Goals, Rest),
    assertz(by_rule(Head, Goals, Rest)),
    forall(( member(Atom, [Head]) ; goals(Body, List, []), member(Atom, List) ), occur(Atom)).
add(Fact) :-
    facts_module(M),
    functor(Fact, Name, Arity), functor(Any, Name, Arity),
    (   clause(fact(Any), _) -> true ; dynamic(M:Name/Arity), assertz((fact(Any) :- M:Any)) ),
    assertz(M:Fact),
    add_known(Fact),
    occur(Fact).

facts_module(Facts) :- prolog_load_context(module, M), atom_concat(M, ' facts', Facts).

/* Constants are what is not a variable. */
occur(Atom) :-
    Atom =.. [P|Args],
    once_each(predicate_name(P)),
    forall(( member(C, Args), atomic(C) ), once_each(constant_name(C))).

once_each(Clause) :- ( Clause -> true ; assertz(Clause) ).

goals((A, B), Goals, Rest) :- !, goals(A, Goals, More), goals(B, More, Rest).
goals(A, [A|Rest], Rest).

/* Queries whose predicate heads no rule are dropped. */
add_query(Query) :-
    add_known(Query),
    functor(Query, Name, Arity), functor(Head, Name, Arity),
    (   by_rule(Head, _, _)
    ->  nb_getval(queries, I), assertz(train(I, Query)), I1 is I + 1, nb_setval(queries, I1)
    ;   true
    ).

/* Facts and queries, the arguments of which find them. */
add_known(Atom) :- known_as(Atom, Known), once_each(Known).

known_as(Atom, known(P, X, Y)) :- Atom =.. [P, X|Rest], ( Rest = [Y] -> true ; Y = 0 ).

:- load.

/* --- episodes ------------------------------------------------------------------------------- */

/* s(Goals, Successors, Visited, Label, Excluded): a successor is a list of goals, or true, false
 * or endf. */
env_spec([actions(20), max_steps(20)|Obs]) :-
    constants(C),
    High is C + 512,
    (   set(observe, tokens)
    ->  Obs = [obs(tokens, int32, [21,10,3], 0, High)]
    ;   Obs = [obs(count, int32, [2], 0, 630)]
    ).

reset(Rand, State) :-
    queries(N),
    Bit is Rand /\ 1, I is (Rand >> 1) mod N,
    train(I, Query),
    set(labels, Labels),
    (   label(Labels, Bit, 1)
    ->  begin(Query, 1, State)
    ;   corrupted(Query, Rand, Other), begin(Other, 0, State)
    ).

label(both, Bit, Bit).
label(positive, _, 1).
label(corrupted, _, 0).

/* Another constant in place of the first or the second, of those that give no known query. */
corrupted(Query, Rand, Other) :-
    constants(C),
    Side is (Rand >> 20) /\ 1, From is (Rand >> 21) mod C,
    between(0, C, Step),
    K is (From + Step) mod C + 1,
    constant(New, K),
    replaced(Side, Query, New, Other),
    known_as(Other, Known), \+ Known,
    !.

replaced(1, Query, New, Other) :- Query =.. [P, X, _], !, Other =.. [P, X, New].
replaced(_, Query, New, Other) :- Query =.. [P, _|Rest], Other =.. [P, New|Rest].

/* A true query may not be proved by itself. */
begin(Query, Label, s(Goals, Successors, Visited, Label, Excluded)) :-
    ( Label == 1 -> Excluded = Query ; Excluded = none ),
    next([Query], [], Excluded, Goals, Successors, Visited, _).

actions(s(_, Successors, _, _, _), Successors).

step(s(_, _, Visited0, Label, X), Chosen, s(Goals, Successors, Visited, Label, X), Result) :-
    next(Chosen, Visited0, X, Goals, Successors, Visited, GaveUp),
    result(Chosen, Label, GaveUp, Result).

result(true, Label, _, result(R, terminated)) :- !, R is 2 * Label - 1.
result(Chosen, Label, _, result(R, terminated)) :- atom(Chosen), Chosen \== [], !, R is 1 - 2 * Label.
result(_, _, GaveUp, result(0, Status)) :- ( GaveUp == 1 -> Status = truncated ; Status = running ).

/* --- what there is to choose from ------------------------------------------------------------ */

next([G|Gs], Visited0, X, Goals, Successors, Visited, GaveUp) :-
    !,
    From = [G|Gs],
    expand(From, X, Found0),
    (   set(follow, 1)
    ->  follow(Found0, 1, From, Visited0, X, Goals, Found1, Visited1, GaveUp)
    ;   Goals = From, Found1 = Found0, Visited1 = Visited0, GaveUp = 0
    ),
    Visited = [From|Visited1],
    drop(Found1, Visited, Found),
    choose(Found, Goals, Successors).
next(End, Visited, _, End, [End], Visited, 0).

/* A state with a single successor that is no end is followed at once, 20 times in a row at most. */
follow([[G|Gs]], N, _, Visited0, X, Goals, Found, Visited, GaveUp) :-
    !,
    Now = [G|Gs],
    expand(Now, X, Found0),
    Visited1 = [Now|Visited0],
    (   N > 20
    ->  Goals = Now, Found = [false], Visited = Visited1, GaveUp = 1
    ;   drop(Found0, Visited1, Found1),
        N1 is N + 1,
        follow(Found1, N1, Now, Visited1, X, Goals, Found, Visited, GaveUp)
    ).
follow(Found, _, Goals, Visited, _, Goals, Found, Visited, 0).

/* Without states of ten goals or more, and those that were visited. */
drop([], _, []).
drop([N|Ns], Visited, Left) :-
    (   too_long(N) -> Left = More
    ;   visited(N, Visited) -> Left = More
    ;   Left = [N|More]
    ),
    drop(Ns, Visited, More).

too_long([_,_,_,_,_,_,_,_,_,_|_]).

visited(N, [V|Vs]) :- ( same_goals(N, V) -> true ; visited(N, Vs) ).

/* The same set of goals. */
same_goals([A], [B]) :- !, A == B.
same_goals([A|As], Bs) :- all_in([A|As], Bs), all_in(Bs, [A|As]).

all_in([], _).
all_in([A|As], Bs) :- in(Bs, A), all_in(As, Bs).

in([B|Bs], A) :- ( A == B -> true ; in(Bs, A) ).

/* At most 19, the shortest, without repeats, and giving in where nothing else ends the episode. */
choose([true], _, [true]) :- !.
choose([false], _, [false]) :- !.
choose(Found, Goals, Successors) :-
    term_variables(Goals, Old),
    unique(Found, Old, Unique),
    (   shortest(Unique, Few) -> true ; Few = Unique ),
    append(Few, [endf], Successors).

shortest(All, Few) :-
    length(First, 19), append(First, [_|_], All),
    map_list_to_pairs(length, All, Pairs),
    keysort(Pairs, Sorted),
    pairs_values(Sorted, Values),
    length(Few, 19), append(Few, _, Values).

unique([], _, []).
unique([N|Ns], Old, [N|Us]) :- without(Ns, Old, N, Left), unique(Left, Old, Us).

/* Variables of the state that was expanded stay what they are; new ones have no names yet. */
without([], _, _, []).
without([M|Ms], Old, N, Left) :-
    (   Old-M =@= Old-N -> Left = More ; Left = [M|More] ),
    without(Ms, Old, N, More).

/* --- one step of resolution ------------------------------------------------------------------ */

expand(Goals, X, Found) :-
    sorted(Goals, [G|Rest]),
    term_variables(Goals, Old),
    findall(Old-N, resolvent(G, Rest, X, N), Copies),
    (   Copies == [] -> Found = [false]
    ;   restore(Copies, Old, Found) -> true
    ;   Found = [true]
    ).

/* By facts, then by rules. */
resolvent(G, Rest, X, N) :-
    (   ground(G)
    ->  G \== X, once(fact(G)), N = Rest
    ;   fact(G), G \== X, left(Rest, X, N)
    ).
resolvent(G, Rest, _, N) :- by_rule(G, N, Rest).

/* Goals that have become facts go. */
left([], _, []).
left([A|As], X, Left) :-
    (   ground(A), A \== X, fact(A) -> Left = More ; Left = [A|More] ),
    left(As, X, More).

/* Copies have the old variables again, where those stand for nothing. Fails where no goal is left:
 * that is a proof. */
restore([], _, []).
restore([Copy-N|Copies], Old, [N|Found]) :-
    N \== [],
    same_variables(Copy, Old, Old),
    restore(Copies, Old, Found).

same_variables([], [], _).
same_variables([C|Cs], [V|Vs], Old) :-
    (   var(C), \+ in(Old, C) -> C = V ; true ),
    same_variables(Cs, Vs, Old).

/* Goals with fewer variables come first; else they keep their order. */
sorted([G], [G]) :- !.
sorted(Goals, Sorted) :-
    with(Goals, 0, Sorted, Ones), with(Goals, 1, Ones, Twos), with(Goals, 2, Twos, []).

with([], _, Rest, Rest).
with([G|Gs], N, Sorted, Rest) :-
    variables(G, K),
    (   K =:= N -> Sorted = [G|More] ; Sorted = More ),
    with(Gs, N, More, Rest).

variables(G, K) :-
    arg(1, G, A), ( var(A) -> K1 = 1 ; K1 = 0 ),
    (   arg(2, G, B), var(B) -> K is K1 + 1 ; K = K1 ).

/* --- what is seen ---------------------------------------------------------------------------- */

/* A token for the state, one for each successor: ten rows (predicate, first, second). */
observation(s(Goals, Successors, _, _, _), [Numbers]) :-
    (   set(observe, tokens)
    ->  copy_term(Goals-Successors, Gs-Ss),
        constants(C), First is C + 1,
        numbervars(Gs, First, Next),
        token(Gs, Numbers, Tokens),
        tokens(Ss, Next, 20, Tokens)
    ;   ( is_list(Goals) -> length(Goals, G) ; G = 0 ),
        length(Successors, S), Numbers = [G, S]
    ).

tokens([], _, N, Zeros) :- Count is 30 * N, length(Zeros, Count), maplist(=(0), Zeros).
tokens([S|Ss], Next, N, Numbers) :-
    numbervars(S, Next, _),
    token(S, Numbers, Rest),
    N1 is N - 1,
    tokens(Ss, Next, N1, Rest).

token([G|Gs], Numbers, Rest) :- !, rows([G|Gs], 10, Numbers, Rest).
token(End, [I,0,0|Numbers], Rest) :- predicate(End, I), rows([], 9, Numbers, Rest).

rows(_, 0, Rest, Rest) :- !.
rows([], N, [0,0,0|Numbers], Rest) :- N1 is N - 1, rows([], N1, Numbers, Rest).
rows([G|Gs], N, [I,A,B|Numbers], Rest) :-
    functor(G, P, Arity), predicate(P, I),
    arg(1, G, First), id(First, A),
    (   Arity =:= 2 -> arg(2, G, Second), id(Second, B) ; B = 0 ),
    N1 is N - 1,
    rows(Gs, N1, Numbers, Rest).

id('$VAR'(I), I) :- !.
id(Constant, I) :- constant(Constant, I).
