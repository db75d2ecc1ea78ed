"""rollouts.py DIRECTORY [NAME...]: what dump_rollouts wrote, against the equations of PPO, APPO and V-trace:
advantages and targets, PopArt, running scales, losses by autograd, clipping and Adam."""

import math
import sys

import torch

from learners import Adam, Net, Normaliser, log_softmax, main


class Policy:
    """ln pi(a) and entropy of several choices a step."""

    def __init__(self, case):
        self.sizes = case.about["choices"]

    def __call__(self, logits, mask, action):
        logp, entropy = 0, 0
        for l, m, a in zip(logits.split(self.sizes, -1), mask.split(self.sizes, -1), action.unbind(-1)):
            ln = log_softmax(l, m)
            logp = logp + ln.gather(-1, a.long()[..., None])[..., 0]
            entropy = entropy - (ln.exp() * ln * m).sum(-1)
        return logp, entropy


class Gaussian:
    """ln pi(a) and entropy of real actions: draws of normals, which tanh may bound (Haarnoja 2018, appendix C)."""

    def __init__(self, case):
        self.tanh = case.about["tanh"]

    def __call__(self, out, mask, drawn):
        mean, log_deviation = out.chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_deviation.clamp(-20, 2).exp())
        logp = normal.log_prob(drawn)
        if self.tanh:
            logp = logp - (1 - torch.tanh(drawn) ** 2).log()
        return logp.sum(-1), normal.entropy().sum(-1)


class ActorCritic:
    def __init__(self, case):
        self.case, self.a = case, case.algorithm
        self.net = Net(case, case.about["tensors"], case.get("params", 0))
        self.adam, self.normaliser = Adam(case, self.net), Normaliser()
        self.policy = (Gaussian if case.about["reals"] else Policy)(case)
        self.mu, self.sigma, self.nu, self.k = 0.0, 1.0, 1.0, 0
        self.recurrent = case.about["state"] > 0
        self.own = torch.zeros(case.about["lanes"], case.about["value_state"])
        self.returns, self.all_returns = torch.zeros(case.about["lanes"]), torch.zeros(0)
        self.scale = 1.0

    def read(self, number):
        c, lanes = self.case, self.case.about["lanes"]
        r = {name: c.get(name, number, -1, lanes) for name in
             ("logp", "reward", "discount", "valid", "first", "kept")}
        r["x"] = c.get("x", number, -1, lanes, c.about["inputs"])
        r["action"] = c.get("action", number, -1, lanes, c.about["reals"] or len(c.about["choices"]))
        r["mask"] = r["action"] if c.about["reals"] else c.get("mask", number, -1, lanes, c.about["actions"])
        if self.recurrent:
            r["state"] = c.get("state", number, lanes, -1)
            r["after"] = c.get("after", number, lanes, -1)
            r["first"] = r["first"] % 2 > 0
        self.r, self.steps, self.lanes = r, len(r["logp"]), lanes

    def evaluate(self):
        """z of all rows and the successors; the policy's ln pi(a) of the rows."""
        r = self.r
        with torch.no_grad():
            self.first_state = None
            if not self.recurrent:
                out, z, _ = self.net(r["x"])
            else:
                self.first_state = r["state"]
                if self.first_state.shape[1] < self.case.about["state"]:
                    self.first_state = torch.cat([r["state"], self.own], 1)
                out, z, after = self.net(r["x"][:-1], self.first_state, r["first"][:-1])
                if self.case.about["value_state"]:
                    self.own = after[:, -self.case.about["value_state"] :]
                if r["kept"] is not None:
                    after = r["after"]
                _, z_next, _ = self.net(r["x"][-1:], after, r["first"][-1:])
                z = torch.cat([z, z_next])
            if r["kept"] is not None:
                z = torch.cat([r["kept"], z[-1:]])
            logp, _ = self.policy(out[: self.steps], r["mask"], r["action"])
        return z, logp

    def scaled_rewards(self):
        r = self.r["reward"].clone()
        if not self.a["normalize_rewards"]:
            return r
        gamma = self.case.sample["gamma"]
        for t in range(self.steps):
            there = self.r["valid"][t] > 0
            self.returns = torch.where(there, gamma * self.returns + r[t + 1], torch.zeros(self.lanes))
            self.all_returns = torch.cat([self.all_returns, self.returns[there]])
        self.scale = math.sqrt(self.all_returns.var(unbiased=False).item() + 1e-8)
        return (r / self.scale).clamp(-self.a["reward_clip"], self.a["reward_clip"])

    def advantages(self, v, logp):
        """GAE (Schulman 2016), or V-trace (Espeholt 2018) by its recursion."""
        r, lam, reward = self.r, self.a["gae_lambda"], self.scaled_rewards()
        ratio = torch.exp(logp - r["logp"]) if self.a["name"] != "ppo" else torch.ones_like(logp)
        rho_max, c_max = (self.a["rho_max"], self.a["c_max"]) if self.a["name"] != "ppo" else (1, 1)
        rho, c = ratio.clamp(max=rho_max), lam * ratio.clamp(max=c_max)
        target, carried = v[:-1].clone(), torch.zeros(self.lanes)  # carried: target - v of the next
        advantage = torch.zeros_like(target)
        for t in reversed(range(self.steps)):
            there, g = r["valid"][t] > 0, r["discount"][t]
            delta = rho[t] * (reward[t + 1] + g * v[t + 1] - v[t])
            now = torch.where(there, delta + g * c[t] * carried, torch.zeros(self.lanes))
            step = rho[t] * (reward[t + 1] + g * (v[t + 1] + carried) - v[t])
            target[t] = v[t] + now
            advantage[t] = now if self.a["name"] == "ppo" else torch.where(there, step, torch.zeros(self.lanes))
            carried = now
        return advantage, target

    def follow_returns(self, returns):
        """PopArt: returns' moments, and outputs preserved."""
        if self.a["value_head"] != "popart":
            return
        self.k += 1
        beta, mu, sigma = max(1 / self.k, self.a["popart_beta"]), self.mu, self.sigma
        self.mu += beta * (returns.mean().item() - mu)
        if self.a["popart_deviation"] == "moments":
            self.nu += beta * ((returns ** 2).mean().item() - self.nu)
            self.sigma = math.sqrt(self.nu - self.mu ** 2)
        else:
            self.sigma = math.sqrt((1 - beta) * sigma ** 2 + beta * returns.var().item())
        with torch.no_grad():
            self.net.p["value_head.weight"] *= sigma / self.sigma
            bias = self.net.p["value_head.bias"]
            bias.copy_((sigma * bias + mu - self.mu) / self.sigma)

    def loss(self, at, advantage):
        """Of rows that are samples: at is (steps, lanes) indices of lanes, or flat ones of rows."""
        r, a = self.r, self.a
        if self.recurrent:
            out, z, _ = self.net(r["x"][:-1][:, at], self.first_state[at], r["first"][:-1][:, at])
            pick = lambda t: t[: self.steps][:, at][r["valid"][:, at] > 0]
            out, z = out[r["valid"][:, at] > 0], z[r["valid"][:, at] > 0]
        else:
            pick = lambda t: t[: self.steps].flatten(0, 1)[at]
            out, z, _ = self.net(pick(r["x"]))
        adv = pick(advantage)
        if a["normalize_advantages"] == "minibatch":
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        logp, entropy = self.policy(out, pick(r["mask"]), pick(r["action"]))
        log_ratio = logp - pick(self.old_logp)
        ratio = log_ratio.exp()
        if a["name"] == "vtrace":
            policy, outside = -(adv * logp).mean(), torch.zeros(1)
        else:
            held = ratio.clamp(1 - a["clip"], 1 + a["clip"])
            policy, outside = -torch.min(ratio * adv, held * adv).mean(), (held != ratio).double()
        error = (z - pick(self.z_target)) ** 2
        if a["value_clip"] > 0:
            old = pick(self.z_old)
            held = old + (z - old).clamp(-a["value_clip"], a["value_clip"])
            other = (held - pick(self.z_target)) ** 2
            means = a["value_clip_maximum"] == "means"
            error = torch.max(error.mean(), other.mean()) if means else torch.max(error, other)
        value = 0.5 * error.mean()
        loss = policy + a["value_coefficient"] * value - a["entropy_coefficient"] * entropy.mean()
        kl = (ratio - 1 - log_ratio).sum()
        n = len(adv)
        with torch.no_grad():
            sums = torch.stack([policy * n, value * n, entropy.sum(), outside.mean() * n, kl])
        return loss, sums, n

    def learn(self, number):
        a = self.a
        self.read(number)
        z, logp = self.evaluate()
        advantage, target = self.advantages(self.mu + self.sigma * z, logp)
        self.old_logp = self.r["logp"] if a["name"] == "ppo" else logp
        there = self.r["valid"] > 0
        off = (target - (self.mu + self.sigma * z[:-1]))[there]
        explained = 1 - (off.var(unbiased=False) / target[there].var(unbiased=False)).item()
        v = self.mu + self.sigma * z
        self.follow_returns(target[there])
        self.z_old, self.z_target = (v - self.mu) / self.sigma, (target - self.mu) / self.sigma
        if a["normalize_advantages"] == "batch":
            advantage = (advantage - advantage[there].mean()) / (advantage[there].std() + 1e-8)
        elif a["normalize_advantages"] == "off":
            advantage = advantage / self.sigma
        epochs = 1 if a["name"] == "vtrace" else a["epochs"]
        sums, samples, passes, norm, kl = torch.zeros(5), 0, 0, 0.0, 0.0
        for epoch in range(epochs):
            order = self.case.get("order", number * epochs + epoch).long()
            n, parts, pass_kl, pass_samples = len(order), a["minibatches"], 0.0, 0
            for part in range(parts):
                loss, s, m = self.loss(order[n * part // parts : n * (part + 1) // parts], advantage)
                norm = self.adam.step(loss)
                sums, samples = sums + s, samples + m
                pass_kl, pass_samples = pass_kl + s[4].item(), pass_samples + m
            passes, kl = passes + 1, pass_kl / pass_samples
            if 0 < a["target_kl"] < kl:
                break
        self.normaliser.add(self.r["x"][:-1][there], self.net)
        mean = (sums / samples).tolist()
        figures = [*mean[:3], kl, mean[3], explained, self.mu, self.sigma, self.scale, passes, norm]
        self.case.compare(f"figures of rollout {number}", self.case.get("figures", number), figures)
        self.case.compare_weights(number + 1, self.net)


def check(case):
    learner = ActorCritic(case)
    for number in range(case.about["rollouts"]):
        learner.learn(number)


sys.exit(main(check))
