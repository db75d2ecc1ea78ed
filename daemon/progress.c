#include "daemon/progress.h"

struct rm_progress_rates rm_progress_rates(const struct rm_progress *p)
{
    if (p->trained_ns <= p->started_ns)
        return (struct rm_progress_rates){rm_rate_per_s(&p->steps_rate),
                                          rm_rate_per_s(&p->updates_rate)};
    const double trained = (double)(p->trained_ns - p->started_ns) / 1e9;
    return (struct rm_progress_rates){
        (double)(rm_session_agent_steps(p->session) - p->agent_steps_before) / trained,
        (double)(rm_session_updates(p->session) - p->updates_before) / trained};
}

double rm_progress_time_left(const struct rm_progress *p)
{
    const uint64_t budget = p->session->board.run->env_steps_budget;
    const uint64_t steps = rm_session_steps(p->session);
    const bool offline = rm_experiment_is_offline(&p->session->experiment);
    const double rate = offline
                            ? rm_rate_per_s(&p->updates_rate) / (double)p->session->plan.policies
                            : rm_rate_per_s(&p->steps_rate) / (double)p->session->plan.agents;
    if (budget == 0 || rate <= 0)
        return -1;
    return steps >= budget ? 0 : (double)(budget - steps) / rate;
}
