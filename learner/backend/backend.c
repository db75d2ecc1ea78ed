#include "learner/backend/backend.h"

void rm_backend_destroy(struct rm_backend *backend)
{
    if (backend)
        backend->ops->destroy(backend);
}
