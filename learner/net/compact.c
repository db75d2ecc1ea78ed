/* Chooses the results that are stored as compact images (backend.h): between convolutions, and
 * before the linear layer after them. Compact images have half the bytes, in the order in which a
 * device reads them. */
#include "learner/net/parts.h"

/* The only needed step that reads `index`; NULL if there is none, if there are several, or if it
 * reads `index` twice. */
static const struct rm_step *reader_of(const struct rm_net_workspace *w, uint32_t index)
{
    const struct rm_net *net = w->net;
    const struct rm_step *found = NULL;
    for (uint32_t i = index + 1; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        if (!w->needed[i] || (s->from != index && s->other != index))
            continue;
        if (found || s->other == index)
            return NULL;
        found = s;
    }
    return found;
}

static bool takes_compact(const struct rm_net_workspace *w, const struct rm_step *s)
{
    if (s->kind == RM_STEP_LINEAR)
        return !s->product[0].noisy && s->in.channels && s->in.tokens == 1;
    if (s->kind != RM_STEP_CONV2D)
        return false;
    struct rm_conv conv = rm_step_conv(w, s);
    conv.x_compact = true;
    return w->backend->ops->conv2d_compact(w->backend, &conv);
}

static bool makes_compact(const struct rm_net_workspace *w, uint32_t index)
{
    const struct rm_step *s = &w->net->steps[index];
    if (s->kind != RM_STEP_CONV2D || !w->needed[index] || index == w->result ||
        rm_activation_reads_input(s->act))
        return false;
    struct rm_conv conv = rm_step_conv(w, s);
    conv.y_compact = true;
    const struct rm_step *reader = reader_of(w, index);
    return reader && takes_compact(w, reader) && w->backend->ops->conv2d_compact(w->backend, &conv);
}

void rm_compact_choose(struct rm_net_workspace *w)
{
    const struct rm_net *net = w->net;
    if (!w->backend->ops->conv2d_compact)
        return;
    for (uint32_t i = 0; i < net->step_count; i++) {
        struct rm_step_buffers *b = &w->steps[i];
        const struct rm_step *s = &net->steps[i];
        b->compact = makes_compact(w, i);
        if (s->kind == RM_STEP_LINEAR && rm_reads_compact(w, s))
            b->product[0].images = (struct rm_image_rows){.channels = s->in.channels,
                                                          .places = s->in.height * s->in.width};
    }
}
