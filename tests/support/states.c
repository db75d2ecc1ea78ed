#include "tests/support/states.h"

#include "tests/support/unit.h"

#include <string.h>

void rm_test_states_same(const struct rm_state *a, const struct rm_state *b)
{
    assert_int_equal(rm_state_count(a), rm_state_count(b));
    for (size_t i = 0; i < rm_state_count(a); i++) {
        const struct rm_state_part *x = rm_state_at(a, i), *y = rm_state_at(b, i);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->bytes, y->bytes);
        if (memcmp(x->data, y->data, x->bytes) != 0)
            fail_msg("%s differs", x->name);
    }
}
