#include "daemon/ctl/command.h"

#include "config/config.h"
#include "daemon/ctl/exit_code.h"

#include <string.h>

int rm_ctl_schema(const struct rm_ctl_arguments *given)
{
    if (rm_ctl_flag(given, "markdown")) {
        int rc = rm_config_reference(stdout);
        return rc ? rm_ctl_complain(RM_CTL_FAILED, "the reference: %s", strerror(-rc)) : RM_CTL_OK;
    }
    json_t *schema = rm_config_schema();
    if (!schema || json_dumpf(schema, stdout, JSON_INDENT(2))) {
        json_decref(schema);
        return rm_ctl_complain(RM_CTL_FAILED, "the schema could not be written");
    }
    putchar('\n');
    json_decref(schema);
    return RM_CTL_OK;
}
