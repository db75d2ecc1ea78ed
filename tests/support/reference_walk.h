/* reference_walk: what the layers of reference_net pass on to each other. */
#ifndef RM_TESTS_SUPPORT_REFERENCE_WALK_H
#define RM_TESTS_SUPPORT_REFERENCE_WALK_H

#include "tests/support/reference_net.h"

struct reference_rows {
    double *v; /* (count, width) */
    size_t count, width;
    size_t tokens;   /* rows of a state, 0: one */
    size_t image[3]; /* channels, height, width; zeros if it is none */
};

struct reference_walk {
    const struct rm_network_config *config;
    const struct rm_net_shape *shape;
    const struct rm_net *net;
    const double *params;
    const struct reference_input *input;
    size_t noise_used;
    struct reference_rows rows;
    uint32_t layer;
    bool acted;                       /* the action is among the rows */
    size_t state_used;                /* floats of a lane's row of states */
    uint8_t *valid;                   /* of each token of the input; NULL: the network has none */
    size_t tokens;                    /* of a state */
    struct reference_rows items;      /* what went into a pointer */
    const struct rm_net_shape *whole; /* of all observations */
    const char *observed;             /* name of the observation at hand */
    uint32_t first_number;            /* for dropout: of the list's first layer */
    /* What became of several observations, for the value too. */
    struct reference_rows combined;
    /* What the policy's embedding of groups gave, for the value too. */
    struct reference_rows embedded;
    struct reference_rows before[RM_LAYERS_MAX]; /* what went into each layer */
};

/* A tensor's numbers by its layer and part, which are there or the test ends. */
const double *reference_tensor(const struct reference_walk *w, const char *layer, const char *part);
/* Zeros; the caller frees them. */
double *reference_floats(size_t n);
/* x weight^T + bias. */
struct reference_rows reference_product(const struct reference_rows *x, const double *weight,
                                        const double *bias, size_t out);
/* Rows that go on from here, which become the walk's. */
void reference_replace(struct reference_walk *w, struct reference_rows y);
struct reference_rows reference_copy(const struct reference_rows *from);
/* Layers of a list, whose tensors are "LIST.0.weight" and so on. */
void reference_layers(struct reference_walk *w, const struct rm_layer_config *layers,
                      uint32_t count, const char *list);
/* Height and width of an observation, and its channels; zeros if it is no image. */
void reference_image(const uint32_t *dim, uint32_t dims, size_t image[3]);
/* reference_inputs.c: the rows of several observations (input rows, which it frees) through their
 * layers, and combined. */
struct reference_rows reference_inputs(struct reference_walk *w, struct reference_rows x);

#endif
