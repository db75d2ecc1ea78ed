/* Forward, loss and backward: in tiles where the network is small, else over all rows. */
#include "learner/net/parts.h"

#include <string.h>

void rm_net_learn(struct rm_net_workspace *w, const float *params, const struct rm_net_input *input,
                  const struct rm_net_loss *loss, float *grads, double sums[RM_NET_SUMS])
{
    memset(sums, 0, RM_NET_SUMS * sizeof *sums);
    if (w->tiles) {
        rm_net_tiles_learn(w->tiles, params, input, loss, grads, sums);
        return;
    }
    const float *out = rm_net_forward(w, params, input);
    loss->rows(loss->self, 0, input->batch, out, w->d_out, sums);
    rm_net_backward(w, params, input, w->d_out, grads);
}
