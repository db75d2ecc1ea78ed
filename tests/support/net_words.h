/* net_words: layers and shapes of networks in few words, for tables of them. */
#ifndef RM_TESTS_SUPPORT_NET_WORDS_H
#define RM_TESTS_SUPPORT_NET_WORDS_H

#include "learner/net/net.h"

#define LINEAR(n)                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_LINEAR, .units = n                                                        \
    }
#define NOISY(n)                                                                                   \
    {                                                                                              \
        .type = RM_LAYER_NOISY_LINEAR, .units = n                                                  \
    }
#define COSINE(n)                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_COSINE_EMBEDDING, .cosines = n                                            \
    }
#define RELU                                                                                       \
    {                                                                                              \
        .type = RM_LAYER_RELU                                                                      \
    }
#define TANH                                                                                       \
    {                                                                                              \
        .type = RM_LAYER_TANH                                                                      \
    }
#define GELU                                                                                       \
    {                                                                                              \
        .type = RM_LAYER_GELU                                                                      \
    }
#define PLAIN(name)                                                                                \
    {                                                                                              \
        .type = RM_LAYER_##name                                                                    \
    }
#define EMBEDDING(n, rows)                                                                         \
    {                                                                                              \
        .type = RM_LAYER_EMBEDDING, .units = n, .codes = rows                                      \
    }
#define CONV(n, size, step, around)                                                                \
    {                                                                                              \
        .type = RM_LAYER_CONV2D, .units = n, .kernel = size, .stride = step, .padding = around     \
    }
#define RESIDUAL(layers)                                                                           \
    {                                                                                              \
        .type = RM_LAYER_RESIDUAL, .span = layers                                                  \
    }
#define DROPOUT(share)                                                                             \
    {                                                                                              \
        .type = RM_LAYER_DROPOUT, .rate = share                                                    \
    }
#define LAYER_NORM                                                                                 \
    {                                                                                              \
        .type = RM_LAYER_LAYER_NORM                                                                \
    }

#define GRU(n)                                                                                     \
    {                                                                                              \
        .type = RM_LAYER_GRU, .units = n                                                           \
    }
#define LSTM(n)                                                                                    \
    {                                                                                              \
        .type = RM_LAYER_LSTM, .units = n                                                          \
    }

#define ATTENTION(h, n, c)                                                                         \
    {                                                                                              \
        .type = RM_LAYER_ATTENTION, .heads = h, .units = n, .causal = c                            \
    }
#define DROPPING_ATTENTION(h, share)                                                               \
    {                                                                                              \
        .type = RM_LAYER_ATTENTION, .heads = h, .causal = true, .rate = share, .xavier = true      \
    }
#define HISTORY(n, rows)                                                                           \
    {                                                                                              \
        .type = RM_LAYER_HISTORY, .units = n, .codes = rows                                        \
    }
#define POSITION(n)                                                                                \
    {                                                                                              \
        .type = RM_LAYER_POSITION, .codes = n                                                      \
    }
#define MEAN_POOL                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_MEAN_POOL                                                                 \
    }
#define POINTER(n)                                                                                 \
    {                                                                                              \
        .type = RM_LAYER_POINTER, .units = n                                                       \
    }

#define ONE_HOT(at, n)                                                                             \
    {                                                                                              \
        .type = RM_LAYER_ONE_HOT, .column = at, .codes = n                                         \
    }
#define MESSAGES(n)                                                                                \
    {                                                                                              \
        .type = RM_LAYER_MESSAGE_PASSING, .units = n                                               \
    }
#define GRAPH_ATTENTION(h, n)                                                                      \
    {                                                                                              \
        .type = RM_LAYER_GRAPH_ATTENTION, .heads = h, .units = n                                   \
    }
#define GRAPH_POOL                                                                                 \
    {                                                                                              \
        .type = RM_LAYER_GRAPH_POOL                                                                \
    }

/* Observations of tokens. */
#define TOKENS(count, each, acts, ends_in)                                                         \
    {                                                                                              \
        .inputs = (count) * (each), .actions = (acts), .outputs_per_action = 1, .head = (ends_in), \
        .dims = 2, .dim = {                                                                        \
            count,                                                                                 \
            each                                                                                   \
        }                                                                                          \
    }

/* Packed histories: places for context, queries, features, codes of queries, types. */
#define HISTORIES(context, asked, features, codes, acts, kinds)                                    \
    {                                                                                              \
        .inputs = ((context) + (asked)) * ((features) + 2), .actions = (acts),                     \
        .outputs_per_action = 1, .head = RM_HEAD_LOGITS, .dims = 2,                                \
        .dim = {(context) + (asked), (features) + 2}, .history = {                                 \
            .queries = (asked),                                                                    \
            .query_codes = (codes),                                                                \
            .types = (kinds)                                                                       \
        }                                                                                          \
    }

#define SHAPE(in, acts, each)                                                                      \
    {                                                                                              \
        .inputs = (in), .actions = (acts), .outputs_per_action = (each)                            \
    }

/* Logits and a state value. */
#define CRITIC(in, acts)                                                                           \
    {                                                                                              \
        .inputs = (in), .actions = (acts), .outputs_per_action = 1, .head = RM_HEAD_ACTOR_CRITIC   \
    }

/* Images of (c, h, w) numbers, and whole numbers in (low, high). */
#define IMAGE(c, h, w, acts)                                                                       \
    {                                                                                              \
        .inputs = (c) * (h) * (w), .actions = (acts), .outputs_per_action = 1, .dims = 3, .dim = { \
            c,                                                                                     \
            h,                                                                                     \
            w                                                                                      \
        }                                                                                          \
    }
#define CODES(n, acts, least, most)                                                                \
    {                                                                                              \
        .inputs = (n), .actions = (acts), .outputs_per_action = 1, .dims = 1, .dim = {n},          \
        .low = (least), .high = (most)                                                             \
    }
#define TUPLES(n, m, acts, least, most)                                                            \
    {                                                                                              \
        .inputs = (n) * (m), .actions = (acts), .outputs_per_action = 1, .dims = 2, .dim = {n, m}, \
        .low = (least), .high = (most)                                                             \
    }

#endif
