/* The Prolog side of Prolog worlds: loads a world's file into a module of its own, looks at what it
 * says of itself, and finds where it went wrong. plugin.c calls what is exported here; the steps
 * themselves are clauses that link_world/3 makes for each world. */
:- module(ringmaster, [load_world/6, why/5, at_line/4, show/2, world_option/2, world_option_value/2]).

:- dynamic
    given/3,      % Module, Key, Value: of world.options
    taken/3,      % Module, Key, Default: of world_option/2
    instance/3,   % Path, Options, Module: loaded
    loading/3,    % Module, Path, Limit of inferences of its directives: now
    said/3,       % Kind, Where, Text: while it was loaded
    sealed/1,     % Module: episodes run
    looking/1,    % Module: where is it that an exception comes from?
    seen/2.       % File, Line: there

:- multifile user:message_hook/3, user:prolog_exception_hook/4, user:term_expansion/2.
:- dynamic user:message_hook/3, user:prolog_exception_hook/4, user:term_expansion/2.

/* --- options -------------------------------------------------------------------------------- */

/* :- world_option(Key, Default): the world takes such an option. */
:- meta_predicate world_option(:, +), world_option_value(:, -).

world_option(M:Key, Default) :-
    atom(Key), ground(Default),
    !,
    retractall(taken(M, Key, _)),
    (   given(M, Key, Value)
    ->  (   as_default(Default, Value, Is)
        ->  assertz(taken(M, Key, Is))
        ;   source_location(File, Line),
            refuse(File, Line, 'world.options.~w is ~q, but its default is ~q', [Key, Value, Default])
        )
    ;   assertz(taken(M, Key, Default))
    ).
world_option(_:Key, Default) :-
    throw(error(type_error(world_option, Key-Default), _)).

/* What it is: as the experiment says, else the default. */
world_option_value(M:Key, Value) :-
    (   taken(M, Key, Is)
    ->  Value = Is
    ;   throw(error(existence_error(world_option, Key), _))
    ).

as_default(Default, Value, Is) :- float(Default), !, number(Value), Is is float(Value).
as_default(Default, Value, Value) :- integer(Default), !, integer(Value).
as_default(Default, Value, Value) :- is_list(Default), !, is_list(Value).
as_default(Default, Value, Value) :- atom(Default), atom(Value).

/* --- loading -------------------------------------------------------------------------------- */

/* load_world(+Path, +Options, +Limit, -Module, -Host, -Spec): Options is a list of Key-Value; Host
 * is the module of begin/5 and turn/7. Throws refused(Text). */
load_world(Path, Options, Limit, M, Host, Spec) :-
    (   instance(Path, Options, M)
    ->  true
    ;   read_name(Path, Name),
        new_module(Name, M),
        forall(member(Key-Value, Options), assertz(given(M, Key, Value))),
        guard(M),
        catch(load(Path, M, Limit), E, (drop(M), refused(Path, E))),
        assertz(instance(Path, Options, M))
    ),
    spec(Path, M, Limit, Spec),
    link_world(M, Limit, Host).

drop(M) :-
    retractall(given(M, _, _)),
    retractall(taken(M, _, _)),
    retractall(sealed(M)).

/* The first term of a world's file is its module. */
read_name(Path, Name) :-
    (   exists_file(Path)
    ->  true
    ;   format(atom(None), '~w: there is no such file', [Path]), throw(refused(None))
    ),
    catch(first_term(Path, Term, Line), E, (text_of(E, Text), throw(refused(Text)))),
    (   nonvar(Term), Term = (:- module(Name, Exports)), atom(Name), is_list(Exports)
    ->  true
    ;   refuse(Path, Line, 'is no module: a world begins with :- module(NAME, [env_spec/1, reset/2, actions/2, step/4, observation/2]).', [])
    ).

first_term(Path, Term, Line) :-
    setup_call_cleanup(open(Path, read, S, [encoding(utf8)]),
                       read_term(S, Term, [term_position(P)]),
                       close(S)),
    stream_position_data(line_count, P, Line).

/* A world that is there already with other options has a module of its own. */
new_module(Name, M) :-
    (   free(Name)
    ->  M = Name
    ;   between(2, inf, I),
        format(atom(M), '~w#~d', [Name, I]),
        free(M)
    ->  true
    ).

free(M) :- \+ module_property(M, file(_)), \+ memberchk(M, [user, system]).

load(Path, M, Limit) :-
    retractall(said(_, _, _)),
    DirectiveLimit is 100 * Limit,
    format(atom(Id), '~w#~w', [Path, M]),
    setup_call_cleanup(
        ( open(Path, read, S, [encoding(utf8)]), assertz(loading(M, Path, DirectiveLimit)),
          M:use_module(library(apply_macros)) ), % maplist/N, forall/2 and their kin without calls
        load_files(ringmaster_worlds:Id,
                   [stream(S), module(M), imports([]), silent(true), must_be_module(true)]),
        ( retractall(loading(_, _, _)), close(S) )),
    (   said(error, Where, Text)
    ->  throw_at(Where, Text)
    ;   true
    ),
    forall(( given(M, Key, _), \+ taken(M, Key, _) ), no_option(Path, M, Key)),
    forall(needed(Name/Arity), exists(Path, M, Name, Arity)),
    assertz(sealed(M)).

throw_at(Where, Text) :-
    format(atom(All), '~w~w', [Where, Text]),
    throw(refused(All)).

needed(env_spec/1).
needed(reset/2).
needed(actions/2).
needed(step/4).
needed(observation/2).

exists(Path, M, Name, Arity) :-
    functor(Head, Name, Arity),
    (   predicate_property(M:Head, defined)
    ->  true
    ;   refuse(Path, 1, 'has no ~w/~w: a world exports env_spec/1, reset/2, actions/2, step/4 and observation/2', [Name, Arity])
    ).

no_option(Path, M, Key) :-
    findall(K, taken(M, K, _), Ks),
    (   Ks == []
    ->  refuse(Path, 1, 'takes no option ~w: it has no :- world_option(~w, DEFAULT)', [Key, Key])
    ;   atomic_list_concat(Ks, ', ', All),
        refuse(Path, 1, 'takes no option ~w: it takes ~w', [Key, All])
    ).

refuse(Path, Line, Format, Args) :-
    format(atom(Said), Format, Args),
    format(atom(Text), '~w:~w: ~w', [Path, Line, Said]),
    throw(refused(Text)).

/* A directive that calls a predicate of the world has 100 times the inferences of a step: one that
 * never ends has a line. */
user:term_expansion((:- Goal), (:- ringmaster:limited(M:Goal))) :-
    ringmaster:loading(M, _, _),
    prolog_load_context(module, M),
    callable(Goal),
    predicate_property(M:Goal, defined),
    \+ predicate_property(M:Goal, imported_from(_)),
    \+ predicate_property(M:Goal, built_in).

limited(Goal) :-
    loading(_, _, Limit),
    call_with_inference_limit(Goal, Limit, Outcome),
    (   Outcome == inference_limit_exceeded
    ->  source_location(File, Line),
        refuse(File, Line, 'the directive takes more than ~D inferences, 100 times world.options.max_inferences', [Limit])
    ;   true
    ).

/* Whatever is wrong while a world is loaded has its file. */
refused(_, refused(Text)) :- throw(refused(Text)).
refused(Path, E) :- text_of(E, Text), refuse(Path, 1, '~w', [Text]).

/* What is said of errors while a world is loaded. A term that is refused says itself why. */
user:message_hook(Term, Kind, Lines) :-
    ringmaster:loading(_, Path, _),
    ringmaster:note(Kind, Term, Lines, Path).

note(error, undefined_export(_, Predicate), _, Path) :-
    !,
    format(atom(Where), '~w:1: ', [Path]),
    format(atom(Said), 'exports ~q, but has no clause of it', [Predicate]),
    assertz(said(error, Where, Said)).
note(Kind, Term, Lines, Path) :-
    memberchk(Kind, [error, warning]),
    (   one_line(Term, Lines, Path, Said), \+ sub_atom(Said, 0, _, _, Path)
    ->  (   source_location(File, Line)
        ->  format(atom(Where), '~w:~w: ', [File, Line])
        ;   format(atom(Where), '~w: ', [Path])
        )
    ;   one_line(Term, Lines, Path, Said), Where = ''
    ),
    (   Kind == error
    ->  assertz(said(error, Where, Said))
    ;   format(user_error, '<4>~w~w~n', [Where, Said])
    ).

one_line(Term, _, _, Text) :-
    nonvar(Term), ( Term = refused(Text) ; Term = unhandled_exception(E), nonvar(E), E = refused(Text) ),
    !.
one_line(_, Lines, _, Text) :-
    with_output_to(string(S), print_message_lines(current_output, '', Lines)),
    flat(S, Text).

/* Any text as one line. */
flat(S, Text) :-
    split_string(S, "\n\t ", "\n\t ", Parts0),
    exclude(==(""), Parts0, Parts),
    atomic_list_concat(Parts, ' ', Text).

text_of(E, Text) :-
    (   catch(phrase('$messages':translate_message(E), Lines), _, fail)
    ->  one_line(E, Lines, '', Text)
    ;   format(atom(Text), '~q', [E])
    ).

/* --- what stays as it is while episodes run ------------------------------------------------- */

/* All engines share the clauses: a world that is sealed may not change them. None may end the
 * process. */
guard(M) :-
    forall(changes(Head), ( functor(Head, Name, Arity),
                            guard(M, Head, ( ringmaster:may_change(M, Name/Arity), @(system:Head, M) )) )),
    forall(member(Head, [halt, halt(_)]), ( functor(Head, Name, Arity),
                                            guard(M, Head, ringmaster:may_not_end(Name/Arity)) )).

guard(M, Head, Body) :-
    redefine_system_predicate(M:Head),
    functor(Head, Name, Arity),
    dynamic(M:Name/Arity),
    assertz(M:(Head :- Body)).

changes(assert(_)).
changes(assert(_, _)).
changes(asserta(_)).
changes(asserta(_, _)).
changes(assertz(_)).
changes(assertz(_, _)).
changes(retract(_)).
changes(retractall(_)).
changes(abolish(_)).
changes(abolish(_, _)).
changes(erase(_)).
changes(recorda(_, _)).
changes(recorda(_, _, _)).
changes(recordz(_, _)).
changes(recordz(_, _, _)).
changes(flag(_, _, _)).

may_change(M, Predicate) :-
    (   sealed(M)
    ->  throw(error(permission_error(call, world, Predicate),
                    context(_, 'what changes in an episode belongs into its State')))
    ;   true
    ).

may_not_end(Predicate) :-
    throw(error(permission_error(call, world, Predicate),
                context(_, 'an episode ends with the status terminated'))).

/* --- what it says of itself ----------------------------------------------------------------- */

/* spec(Actions, MaxSteps, [obs(Name, Type, Shape, Low, High), ...]) */
spec(Path, M, Limit, spec(N, T, Obs)) :-
    at_line(M, env_spec, 1, Line),
    outcome(M:env_spec(List), Limit, Outcome, E),
    (   wrong(Outcome, E, Limit, Why) -> refuse(Path, Line, 'env_spec/1 ~w', [Why])
    ;   var(List) -> refuse(Path, Line, 'env_spec(List) leaves List open', [])
    ;   is_list(List) -> true
    ;   refuse(Path, Line, 'env_spec(List): List is ~q, must be a list', [List])
    ),
    (   member(Strange, List), \+ known(Strange)
    ->  refuse(Path, Line, 'env_spec/1 has ~q; it may have actions(N), max_steps(T), and obs(NAME, TYPE, SHAPE) or obs(NAME, TYPE, SHAPE, LOW, HIGH) with TYPE int32 or float32', [Strange])
    ;   true
    ),
    count_of(Path, Line, List, actions, 65536, N),
    count_of(Path, Line, List, max_steps, 1000000000, T),
    findall(O, ( member(Said, List), obs_of(Said, O) ), Obs),
    (   Obs == [] -> refuse(Path, Line, 'env_spec/1 has no obs(NAME, TYPE, SHAPE)', []) ; true ).

count_of(Path, Line, List, Name, Most, Value) :-
    Term =.. [Name, Value0],
    (   memberchk(Term, List), integer(Value0), Value0 >= 1, Value0 =< Most
    ->  Value = Value0
    ;   refuse(Path, Line, 'env_spec/1 needs one ~w(NUMBER), from 1 to ~w', [Name, Most])
    ).

known(actions(_)).
known(max_steps(_)).
known(obs(Name, Type, Shape)) :- obs_of(obs(Name, Type, Shape), _).
known(obs(Name, Type, Shape, Low, High)) :- obs_of(obs(Name, Type, Shape, Low, High), _).

obs_of(obs(Name, int32, Shape), O) :- obs_of(obs(Name, int32, Shape, -2147483648, 2147483647), O).
obs_of(obs(Name, float32, Shape), O) :- obs_of(obs(Name, float32, Shape, -inf, inf), O).
obs_of(obs(Name, Type, Shape, Low, High), obs(Name, Type, Shape, L, H)) :-
    atom(Name), memberchk(Type, [int32, float32]), is_list(Shape), length(Shape, Dims),
    Dims >= 1, Dims =< 4, forall(member(S, Shape), ( integer(S), S >= 1 )),
    number_or_inf(Low), number_or_inf(High), L is float(Low), H is float(High), L =< H.

number_or_inf(X) :- number(X).
number_or_inf(inf).
number_or_inf(-inf).

/* --- steps ---------------------------------------------------------------------------------- */

/* begin(Rand, State, Actions, Observation, Outcome), and turn(State, Action, State1, Result,
 * Actions, Observation, Outcome), of clauses that call the world's own without looking for them.
 * Outcome: inference_limit_exceeded, else ! or true. The last state of an episode has no actions. */
link_world(M, Limit, Host) :-
    format(atom(Host), 'ringmaster ~w ~w', [M, Limit]),
    (   current_module(Host)
    ->  true
    ;   Host:assertz((begin(R, S, As, Os, Outcome) :-
                         call_with_inference_limit(begin(R, S, As, Os), Limit, Outcome))),
        Host:assertz((begin(R, S, As, Os) :-
                         M:reset(R, S), !, M:actions(S, As), !, M:observation(S, Os), !)),
        Host:assertz((turn(S, A, S1, Result, As, Os, Outcome) :-
                         call_with_inference_limit(turn(S, A, S1, Result, As, Os), Limit, Outcome))),
        Host:assertz((turn(S, A, S1, Result, As, Os) :-
                         M:step(S, A, S1, Result), !, rest(Result, S1, As, Os))),
        Host:assertz((rest(result(_, Status), S, As, Os) :-
                         Status == running, !, M:actions(S, As), !, M:observation(S, Os), !)),
        Host:assertz((rest(_, S, [], Os) :- M:observation(S, Os), !)),
        forall(member(P, [begin/5, begin/4, turn/7, turn/6, rest/4]), compile_predicates([Host:P]))
    ).

/* --- what went wrong ------------------------------------------------------------------------ */

/* why(+Module, +Path, +Limit, +Call, -Text): plays again what went wrong: begin(Rand) or turn(State,
 * Action). Text '' if it goes well. */
why(M, Path, Limit, begin(R), Text) :-
    tries(M, Path, Limit, [reset(R, S), actions(S, _), observation(S, _)], Text).
why(M, Path, Limit, turn(S, A), Text) :-
    tries(M, Path, Limit, [step(S, A, S1, Result), next(Result, S1), observation(S1, _)], Text).

tries(_, _, _, [], '').
tries(M, Path, Limit, [next(Result, S)|Goals], Text) :-
    !,
    (   subsumes_term(result(_, running), Result)
    ->  tries(M, Path, Limit, [actions(S, _)|Goals], Text)
    ;   tries(M, Path, Limit, Goals, Text)
    ).
tries(M, Path, Limit, [G|Goals], Text) :-
    copy_term(G, Before),
    brief(Before, Goal),
    outcome(M:G, Limit, Outcome, E),
    (   memberchk(Outcome, [!, true])
    ->  tries(M, Path, Limit, Goals, Text)
    ;   functor(G, Name, Arity),
        (   Outcome == thrown, thrown_at(M, Before, Limit, File, Line, Thrown)
        ->  true
        ;   File = Path, at_line(M, Name, Arity, Line), Thrown = E
        ),
        wrong(Outcome, Thrown, Limit, Said),
        format(atom(Text), '~w:~w: ~w ~w', [File, Line, Goal, Said])
    ).

outcome(Goal, Limit, Outcome, E) :-
    catch(( call_with_inference_limit(Goal, Limit, Outcome) -> true ; Outcome = failed ), E,
          Outcome = thrown).

thrown_at(M, Goal, Limit, File, Line, E) :-
    retractall(seen(_, _)),
    setup_call_cleanup(look(M), outcome(M:Goal, Limit, thrown, E), look_away),
    seen(File, Line).

/* With every clause in its frame, those of last calls as well. */
look(M) :- assertz(looking(M)), set_prolog_flag(last_call_optimisation, false).
look_away :- set_prolog_flag(last_call_optimisation, true), retractall(looking(_)).

wrong(failed, _, _, 'fails').
wrong(inference_limit_exceeded, _, Limit, Said) :-
    format(atom(Said), 'takes more than ~w inferences (world.options.max_inferences)', [Limit]).
wrong(thrown, E, _, Said) :-
    text_of(E, Text),
    format(atom(Said), 'throws: ~w', [Text]).

/* A goal as a text of some hundred characters. */
brief(G, Text) :-
    \+ \+ ( numbervars(G, 0, _),
            format(atom(Long), '~W', [G, [quoted(true), numbervars(true), max_depth(7), portray(true)]]),
            nb_setval(ringmaster_brief, Long) ),
    nb_getval(ringmaster_brief, Long),
    atom_length(Long, N),
    (   N =< 240 -> Text = Long ; sub_atom(Long, 0, 236, _, Start), atom_concat(Start, ' ...', Text) ).

/* Where a predicate begins. */
at_line(M, Name, Arity, Line) :-
    functor(Head, Name, Arity),
    (   predicate_property(M:Head, line_count(Line)) -> true ; Line = 1 ).

/* While it is looked for: the innermost clause of the world that an exception comes from. */
user:prolog_exception_hook(E, E, Frame, _) :-
    ringmaster:looking(M),
    \+ ringmaster:seen(_, _),
    ringmaster:clause_of(Frame, M, File, Line),
    assertz(ringmaster:seen(File, Line)),
    fail.

clause_of(Frame, M, File, Line) :-
    (   prolog_frame_attribute(Frame, clause, Clause),
        clause_property(Clause, source(Id)),
        instance(Path, _, M),
        sub_atom(Id, 0, _, _, Path),
        clause_property(Clause, line_count(Line0))
    ->  (   clause_property(Clause, file(File)) -> true ; File = Path ),
        Line = Line0
    ;   prolog_frame_attribute(Frame, parent, Parent),
        clause_of(Parent, M, File, Line)
    ).

/* --- for people ----------------------------------------------------------------------------- */

/* A state and its actions, a line each; portray/1 of the world is asked. */
show(State-Actions, Text) :-
    \+ \+ ( numbervars(State-Actions, 0, _),
            with_output_to(string(S),
                           ( line('', State), forall(nth0(I, Actions, A), ( format('~t~w~5|: ', [I]), line('', A) )) )),
            nb_setval(ringmaster_shown, S) ),
    nb_getval(ringmaster_shown, Text).

line(Before, Term) :-
    format('~w~W~n', [Before, Term, [quoted(true), numbervars(true), portray(true)]]).
