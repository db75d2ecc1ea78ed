/* severity: the severities of a worker's messages. Each line that a worker prints on standard error
 * becomes an entry in the journal of its run (daemon/printed.h). A line may begin with a severity,
 * as in sd-daemon(3); a line without one is informational. */
#ifndef RM_SHM_BASE_SEVERITY_H
#define RM_SHM_BASE_SEVERITY_H

#define RM_SEVERITY_ERROR   "<3>"
#define RM_SEVERITY_WARNING "<4>"
#define RM_SEVERITY_NOTICE  "<5>"

#endif
