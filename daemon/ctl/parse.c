/* Parses a command line by the table: --option VALUE, --option=VALUE, and arguments in any order;
 * "--" ends the options. -o VALUE is an option by its first letter, if no other option of the
 * command begins with that letter. */
#include "daemon/ctl/command.h"

#include "config/schema.h"
#include "config/synonyms.h"
#include "daemon/ctl/exit_code.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 16

struct lookup {
    const char *name;
    size_t length;
    const struct rm_ctl_option *found;
    const char *names[OPTIONS_MAX + 1];
    size_t count;
};

static void match(void *user, const struct rm_ctl_option *option)
{
    struct lookup *l = user;
    if (l->count < OPTIONS_MAX)
        l->names[l->count++] = option->name;
    if (strlen(option->name) == l->length && !strncmp(option->name, l->name, l->length))
        l->found = option;
}

/* A key by another program's name for it, or without its section. A last part alone is a key's name
 * if a number follows, and if no other key ends with it. */
static const char *key_meant(const char *word, bool number)
{
    char path[80];
    const char *found = NULL;
    size_t count = 0;
    const size_t section = (size_t)snprintf(path, sizeof path, "run.%s", word) - strlen(word);
    for (char *c = path; *c; c++)
        *c = *c == '-' ? '_' : (char)tolower((unsigned char)*c);
    const char *name = path + section;
    const struct rm_key *key = rm_key_find(name) ? rm_key_find(name) : rm_key_find(path);
    const struct rm_synonym *synonym = rm_synonym_of_key(name);
    if (key || synonym)
        return key ? key->path : synonym->ours;
    for (size_t i = 0; number && i < rm_key_count; i++) {
        const char *dot = strrchr(rm_keys[i].path, '.');
        if (dot && strcmp(dot + 1, name) == 0 && count++ == 0)
            found = rm_keys[i].path;
    }
    return count == 1 ? found : NULL;
}

/* `value`: what was given with it, or the next word, "" if there is none. */
static int unknown_option(const struct lookup *l, const struct rm_ctl_command *command,
                          const char *value, struct rm_error *error)
{
    char word[64], *end = NULL;
    bool sets = false;
    snprintf(word, sizeof word, "%.*s", (int)l->length, l->name);
    (void)strtod(value, &end);
    const bool number = end != value && *end == '\0';
    for (size_t i = 0; i < l->count; i++)
        sets |= strcmp(l->names[i], "set") == 0;
    const char *key = sets ? key_meant(word, number) : NULL;
    if (key)
        return rm_fail(error, -EINVAL, "%s has no option --%s; did you mean --set %s=%s?",
                       command->name, word, key, number ? value : "VALUE");
    const char *near = rm_nearest(word, l->names);
    if (near)
        return rm_fail(error, -EINVAL, "%s has no option --%s; did you mean --%s?", command->name,
                       word, near);
    return rm_fail(error, -EINVAL, "%s has no option --%s", command->name, word);
}

static bool is_number(const char *word)
{
    return word[0] && word[strspn(word, "0123456789.")] == '\0';
}

static int take_option(struct rm_ctl_arguments *arguments, const char *word, int argc, char **argv,
                       int *at, struct rm_error *error)
{
    const struct rm_ctl_command *command = arguments->command;
    const char *equals = strchr(word, '=');
    const char *next = *at + 1 < argc ? argv[*at + 1] : "";
    struct lookup l = {.name = word, .length = equals ? (size_t)(equals - word) : strlen(word)};
    rm_ctl_each_option(command, match, &l);
    if (!l.found)
        return unknown_option(&l, command, equals ? equals + 1 : next, error);
    if (l.found == &rm_ctl_common_options[0]) {
        arguments->help = true;
        return 0;
    }
    const char *value = "";
    if (!l.found->value && equals)
        return rm_fail(error, -EINVAL, "--%s takes no value", l.found->name);
    const bool optional = l.found->value && l.found->value[0] == '[';
    if (l.found->value && equals)
        value = equals + 1;
    else if (optional)
        value = *at + 1 < argc && is_number(argv[*at + 1]) ? argv[++*at] : "";
    else if (l.found->value && ++*at < argc)
        value = argv[*at];
    else if (l.found->value)
        return rm_fail(error, -EINVAL, "--%s needs a value: --%s %s", l.found->name, l.found->name,
                       l.found->value);
    if (!l.found->repeated && rm_ctl_value(arguments, l.found->name))
        return rm_fail(error, -EINVAL, "--%s is given twice", l.found->name);
    if (arguments->given_count == RM_CTL_GIVEN_MAX)
        return rm_fail(error, -EINVAL, "more than %d options", RM_CTL_GIVEN_MAX);
    arguments->given[arguments->given_count].option = l.found;
    arguments->given[arguments->given_count++].value = value;
    return 0;
}

/* "-f": the command's only option that begins with this letter. NULL: there is none, or more. */
static void match_letter(void *user, const struct rm_ctl_option *option)
{
    struct lookup *l = user;
    if (option->name[0] != l->name[0])
        return;
    l->found = l->count++ ? NULL : option;
}

static const char *option_of_letter(const struct rm_ctl_command *command, const char *word)
{
    struct lookup l = {.name = word + 1};
    if (word[2])
        return NULL;
    rm_ctl_each_option(command, match_letter, &l);
    return l.found ? l.found->name : NULL;
}

/* Fills the table's arguments from the words given: those that must be there get theirs, what is
 * left goes to optional ones, in order. So `set KEY=VALUE` and `set NAME KEY=VALUE` both work. */
static int place(struct rm_ctl_arguments *arguments, const char *const *words, size_t count,
                 struct rm_error *error)
{
    const struct rm_ctl_argument *table = arguments->command->arguments;
    size_t needed = 0, known = 0;
    for (; known < RM_CTL_ARGUMENTS_MAX && table[known].name; known++)
        needed += !table[known].optional;
    if (known && strstr(table[known - 1].name, "..."))
        for (; count > known; count--)
            arguments->rest[arguments->rest_count++] = words[count - 1];
    if (count > known)
        return rm_fail(error, -EINVAL, "%s: unexpected argument \"%s\"", arguments->command->name,
                       words[known]);
    size_t spare = count > needed ? count - needed : 0;
    for (size_t i = 0, next = 0; i < known; i++) {
        if (table[i].optional && spare == 0)
            continue;
        if (next == count)
            return rm_fail(error, -EINVAL, "%s needs %s", arguments->command->name, table[i].name);
        spare -= table[i].optional;
        arguments->argument[i] = words[next++];
    }
    return 0;
}

int rm_ctl_parse(struct rm_ctl_arguments *arguments, const struct rm_ctl_command *command, int argc,
                 char **argv, struct rm_error *error)
{
    memset(arguments, 0, sizeof *arguments);
    arguments->command = command;
    const char *words[RM_CTL_REST_MAX];
    size_t count = 0;
    bool options = true;
    for (int i = 0; i < argc; i++) {
        if (options && !strcmp(argv[i], "--")) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            const char *name = argv[i][1] == '-' ? argv[i] + 2 : option_of_letter(command, argv[i]);
            int rc = name ? take_option(arguments, name, argc, argv, &i, error)
                          : rm_fail(error, -EINVAL, "%s has no option %s", command->name, argv[i]);
            if (rc)
                return rc;
        } else if (count == RM_CTL_REST_MAX) {
            return rm_fail(error, -EINVAL, "more than %d arguments", RM_CTL_REST_MAX);
        } else {
            words[count++] = argv[i];
        }
    }
    return arguments->help ? 0 : place(arguments, words, count, error);
}

const char *rm_ctl_value(const struct rm_ctl_arguments *arguments, const char *option)
{
    for (size_t i = arguments->given_count; i > 0; i--)
        if (!strcmp(arguments->given[i - 1].option->name, option))
            return arguments->given[i - 1].value;
    return NULL;
}

bool rm_ctl_flag(const struct rm_ctl_arguments *arguments, const char *option)
{
    return rm_ctl_value(arguments, option) != NULL;
}

static int refuse_number(const char *kind, const char *option, const char *text, double low,
                         double most)
{
    return rm_ctl_complain(RM_CTL_USAGE, "--%s \"%s\": should be a %s from %.10g to %.10g", option,
                           text, kind, low, most);
}

int rm_ctl_number(const struct rm_ctl_arguments *arguments, const char *option, double low,
                  double most, double *number)
{
    const char *text = rm_ctl_value(arguments, option);
    char *end;
    if (!text)
        return 0;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= low && value <= most))
        return refuse_number("number", option, text, low, most);
    *number = value;
    return 0;
}

int rm_ctl_whole(const struct rm_ctl_arguments *arguments, const char *option, uint32_t low,
                 uint32_t most, uint32_t *number)
{
    const char *text = rm_ctl_value(arguments, option);
    char *end;
    if (!text)
        return 0;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < low || value > most)
        return refuse_number("whole number", option, text, low, most);
    *number = (uint32_t)value;
    return 0;
}

size_t rm_ctl_overrides(const struct rm_ctl_arguments *arguments, struct rm_override *overrides)
{
    size_t count = 0;
    for (size_t i = 0; i < arguments->given_count; i++)
        if (!strcmp(arguments->given[i].option->name, "set"))
            overrides[count++].text = arguments->given[i].value;
    return count;
}

int rm_ctl_load(const struct rm_ctl_arguments *arguments, const char *more,
                struct rm_experiment *experiment)
{
    struct rm_override overrides[RM_CTL_GIVEN_MAX + 1];
    struct rm_error error = {""};
    size_t count = rm_ctl_overrides(arguments, overrides);
    if (more)
        overrides[count++].text = more;
    const int rc = rm_config_load(experiment, arguments->argument[0], overrides, count, &error);
    if (rc == 0)
        return RM_CTL_OK;
    /* One error a line, each with its place, as compilers have them. */
    fprintf(stderr, "%s\n", error.text);
    return rc == -EINVAL ? RM_CTL_BAD_CONFIGURATION : RM_CTL_FAILED;
}
