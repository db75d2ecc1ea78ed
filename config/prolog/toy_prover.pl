:- module(toy_prover, [env_spec/1, reset/2, actions/2, step/4, observation/2]).
:- dynamic edge/2, linked/2.
edge(a,b).  edge(b,c).  edge(c,d).  edge(d,b).
linked(X,Y) :- edge(X,Y).
linked(X,Y) :- edge(X,Z), linked(Z,Y).
query(0, linked(a,d), 1).  query(1, linked(d,a), 0).
id(edge,1).  id(linked,2).  id(a,1).  id(b,2).  id(c,3).  id(d,4).  id('$VAR'(N),N).
env_spec([actions(8), max_steps(12), obs(state,int32,[4,3]), obs(successors,int32,[8,4,3])]).
reset(Rand, s([Q], [[Q]], L)) :- I is Rand mod 2, query(I, Q, L).
actions(s([],_,_), [yes]) :- !.
actions(s([G|Rest],Seen,_), Acts) :-
    findall(N, ( clause(G,B), goals(B,Rest,N), length(N,K), K =< 4,
                 \+ ( member(O,Seen), O =@= N ) ), Ns0),
    length(P, 7), ( append(P, _, Ns0) -> Ns = P ; Ns = Ns0 ),
    append(Ns, [stop], Acts).
goals(true, R, R) :- !.
goals((A,B), R, [A|T]) :- !, goals(B, R, T).
goals(A, R, [A|R]).
step(s(_,V,L), A, s([],V,L), result(R,terminated)) :-
    ( A == yes -> T = 1 ; A == stop -> T = 0 ), !,
    ( T == L -> R = 1.0 ; R = -1.0 ).
step(s(_,V,L), New, s(New,[New|V],L), result(0.0,running)).
observation(S, [Cells, Succ]) :-
    S = s(Goals,_,_), cells(Goals, Cells),
    actions(S, As), maplist(cells, As, Ls), append(Ls, F), fill(96, F, Succ).
cells(yes, C) :- !, fill(12, [3,0,0], C).
cells(stop, C) :- !, fill(12, [4,0,0], C).
cells(Gs0, C) :-
    copy_term(Gs0, Gs), numbervars(Gs, 5, _),
    findall(X, ( member(G,Gs), G =.. T, member(Y,T), id(Y,X) ), F), fill(12, F, C).
fill(N, F, C) :- length(C, N), append(F, Z, C), !, maplist(=(0), Z).
