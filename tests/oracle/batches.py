"""batches.py DIRECTORY [NAME...]: what dump_batches wrote, against the equations of DQN, QR-DQN, IQN, SAC of
discrete and of real actions, and R2D2: targets, losses by autograd, errors, clipping, Adam and target networks."""

import math
import sys

import torch

from learners import Adam, Net, Normaliser, log_softmax, main


def huber(u, kappa):
    return torch.where(u.abs() <= kappa, 0.5 * u ** 2, kappa * (u.abs() - 0.5 * kappa))


def best(q, mask):
    """The best legal action; of all where nothing is legal."""
    legal = torch.where(mask.sum(-1, keepdim=True) > 0, mask, torch.ones_like(mask)) > 0
    return torch.where(legal, q, torch.full_like(q, -math.inf)).argmax(-1)


def target_part(a, update):
    """How much of the online network the target network takes over."""
    if a["target"]["update"] == "soft":
        return a["target"]["tau"]
    return 1.0 if update % a["target"]["interval"] == 0 else 0.0


class Replay:
    def __init__(self, case):
        self.case, self.a = case, case.algorithm
        self.net = Net(case, case.about["tensors"], case.get("params", 0))
        self.target = self.net.copy()
        self.adam, self.normaliser = Adam(case, self.net), Normaliser()
        self.actions = case.about["actions"]

    def read(self, u):
        size, c = self.case.sample["batch"], self.case
        self.ret, self.discount = c.get("ret", u), c.get("discount", u)
        self.action, self.weight = c.get("action", u).long(), c.get("weight", u)
        if self.weight is None:
            self.weight = torch.ones(size)
        self.obs = c.get("obs", u, size, -1)
        self.next_obs = c.get("next_obs", u, size, -1)
        self.mask = c.get("mask", u, size, -1)
        self.next_mask = c.get("next_mask", u, size, -1)

    def quantiles(self, net, x, u, which):
        """(batch, quantiles, actions) and their fractions; DQN: one."""
        if self.a["name"] == "iqn":
            tau = self.case.get("tau", u * 3 + which, len(x), -1)
            return net(x, tau=tau)[0], tau
        n = self.a["quantiles"] if self.a["name"] == "qr-dqn" else 1
        tau = ((2 * torch.arange(n) + 1) / (2 * n)).expand(len(x), n)
        return net(x)[0].unflatten(-1, (self.actions, n)).transpose(1, 2), tau

    def learn(self, u):
        self.read(u)
        with torch.no_grad():
            there, _ = self.quantiles(self.target, self.next_obs, u, 1)
            judge = self.quantiles(self.net, self.next_obs, u, 0)[0] if self.a["double_q"] else there
            chosen = best(judge.mean(1), self.next_mask)
            y = there.gather(2, chosen[:, None, None].expand(-1, there.shape[1], 1))[..., 0]
            y = self.ret[:, None] + self.discount[:, None] * y
        q, tau = self.quantiles(self.net, self.obs, u, 2)
        legal = torch.where(self.mask.sum(-1, keepdim=True) > 0, self.mask, torch.ones_like(self.mask))
        means = q.mean(1)
        penalty = (torch.logsumexp(means.masked_fill(legal == 0, -math.inf), 1) -
                   means.gather(1, self.action[:, None])[:, 0])
        q = q.gather(2, self.action[:, None, None].expand(-1, q.shape[1], 1))[..., 0]
        d = y[:, None, :] - q[:, :, None]
        kappa = self.a["kappa"]
        if self.a["name"] == "dqn":
            each = huber(d, kappa)[:, 0, 0]
            error = d.abs()[:, 0, 0]
        else:
            rho = (tau[:, :, None] - (d < 0).double()).abs() * huber(d, kappa) / kappa
            each, error = rho.mean(2).sum(1), rho.mean((1, 2))
        loss = (self.weight * (each + self.a["cql"] * penalty)).mean()
        norm = self.adam.step(loss)
        self.normaliser.add(self.obs, self.net)
        self.target.follow(self.net, target_part(self.a, u))
        self.compare(u, [loss.item(), norm, q.mean().item(), 0, 0], error)

    def compare(self, u, figures, error):
        self.case.compare(f"figures of update {u}", self.case.get("figures", u), figures)
        if self.case.get("error", u) is not None:
            self.case.compare(f"errors of update {u}", self.case.get("error", u), error.detach())
        self.case.compare_weights(u, self.net)


class Sac(Replay):
    """Christodoulou 2019. All gradients at the same parameters."""

    def __init__(self, case):
        super().__init__(case)
        self.critics = [Net(case, case.about["critic_tensors"], case.get("critic", i)) for i in (0, 1)]
        self.targets = [c.copy() for c in self.critics]
        self.adams = [Adam(case, c) for c in self.critics]
        self.log_alpha = torch.tensor(math.log(self.a["temperature"])).requires_grad_()
        o = case.optimizer
        self.tuner = torch.optim.Adam([self.log_alpha], o["learning_rate"], (o["beta1"], o["beta2"]), o["epsilon"])

    @staticmethod
    def legal(mask):
        return torch.where(mask.sum(-1, keepdim=True) > 0, mask, torch.ones_like(mask))

    def learn(self, u):
        self.read(u)
        alpha = self.log_alpha.exp().item()
        with torch.no_grad():
            legal = self.legal(self.next_mask)
            ln = log_softmax(self.net(self.next_obs)[0], legal)
            q = torch.min(*(t(self.next_obs)[0] for t in self.targets))
            v = (ln.exp() * legal * (q - alpha * ln)).sum(-1)
            y = self.ret + self.discount * v
        losses, error, values = [], 0, []
        for critic in self.critics:
            q = critic(self.obs)[0]
            values.append(q.detach())
            off = q.gather(1, self.action[:, None])[:, 0] - y
            losses.append((self.weight * 0.5 * off ** 2).mean())
            error = error + 0.5 * off.abs()
        legal = self.legal(self.mask)
        ln = log_softmax(self.net(self.obs)[0], legal)
        p, q = ln.exp() * legal, torch.min(*values)
        policy = (self.weight * (p * (alpha * ln - q)).sum(-1)).mean()
        entropy = -(p * ln * legal).sum(-1).detach()
        value = (p * q).sum(-1).mean().item()
        norms = [self.adam.step(policy)]
        norms += [adam.step(loss) for adam, loss in zip(self.adams, losses)]
        self.normaliser.add(self.obs, self.net, *self.critics)
        for target, critic in zip(self.targets, self.critics):
            target.follow(critic, target_part(self.a, u))
        if self.a["tune_temperature"]:
            wanted = self.a["target_entropy_ratio"] * legal.sum(-1).log()
            self.tuner.zero_grad()
            (self.log_alpha.exp() * (entropy - wanted).mean()).backward()
            self.tuner.step()
        figures = [policy.item() + sum(l.item() for l in losses), math.hypot(*norms), value, alpha,
                   entropy.mean().item()]
        self.compare(u, figures, error)


class SacOfReals(Sac):
    """Haarnoja 2018: draws go through tanh, critics are given the action."""

    def draw(self, obs, normal):
        mean, log_deviation = self.net(obs)[0].chunk(2, -1)
        log_deviation = log_deviation.clamp(-20, 2)
        action = torch.tanh(mean + log_deviation.exp() * normal)
        logp = -normal ** 2 / 2 - log_deviation - math.log(2 * math.pi) / 2 - (1 - action ** 2).log()
        return action, logp.sum(-1)

    def learn(self, u):
        self.read(u)
        size, alpha = self.case.sample["batch"], self.log_alpha.exp().item()
        taken = torch.tanh(self.case.get("action", u, size, -1))
        with torch.no_grad():
            action, logp = self.draw(self.next_obs, self.case.get("normal", 2 * u, size, -1))
            q = torch.min(*(t(self.next_obs, action=action)[0][:, 0] for t in self.targets))
            y = self.ret + self.discount * (q - alpha * logp)
        action, logp = self.draw(self.obs, self.case.get("normal", 2 * u + 1, size, -1))
        q = torch.min(*(c(self.obs, action=action)[0][:, 0] for c in self.critics))
        policy = (self.weight * (alpha * logp - q)).mean()
        losses, error = [], 0
        for critic in self.critics:
            off = critic(self.obs, action=taken)[0][:, 0] - y
            losses.append((self.weight * 0.5 * off ** 2).mean())
            error = error + 0.5 * off.abs()
        norms = [self.adam.step(policy)]
        norms += [adam.step(loss) for adam, loss in zip(self.adams, losses)]
        self.normaliser.add(self.obs, self.net, *self.critics)
        for target, critic in zip(self.targets, self.critics):
            target.follow(critic, target_part(self.a, u))
        if self.a["tune_temperature"]:
            self.tuner.zero_grad()
            (self.log_alpha.exp() * (-logp.detach() - self.a["target_entropy"] * taken.shape[1]).mean()).backward()
            self.tuner.step()
        figures = [policy.item() + sum(l.item() for l in losses), math.hypot(*norms), q.mean().item(), alpha,
                   -logp.mean().item()]
        self.compare(u, figures, error)


class R2d2(Replay):
    """Kapturowski 2019: burn-in without gradients, then trace and tail from the state it left."""

    def rescale(self, x):
        if not self.a["value_rescale"]:
            return x
        return torch.sign(x) * (torch.sqrt(x.abs() + 1) - 1) + 1e-3 * x

    def unscale(self, x):
        if not self.a["value_rescale"]:
            return x
        root = torch.sqrt(1 + 4e-3 * (x.abs() + 1 + 1e-3))
        return torch.sign(x) * (((root - 1) / 2e-3) ** 2 - 1)

    def unroll(self, net, u):
        burn_in = self.case.sample["burn_in"]
        state = self.case.get("state", u, self.case.sample["batch"], -1)
        if burn_in:
            with torch.no_grad():
                _, _, state = net(self.obs[:burn_in], state, self.restart[:burn_in])
        return net(self.obs[burn_in:], state, self.restart[burn_in:])[0]

    def learn(self, u):
        s, c = self.case.sample, self.case
        size, trace, burn_in = s["batch"], s["sequence"], s["burn_in"]
        self.obs = c.get("obs", u, -1, size, c.about["inputs"])
        self.restart = c.get("restart", u, -1, size) > 0
        mask = c.get("mask", u, -1, size, self.actions)[burn_in:]
        ret, discount = c.get("ret", u, trace, size), c.get("discount", u, trace, size)
        action, valid = c.get("action", u, trace, size).long(), c.get("valid", u, trace, size)
        ahead = c.get("ahead", u, trace, size).long()
        weight = c.get("weight", u)
        weight = torch.ones(size) if weight is None else weight
        q = self.unroll(self.net, u)
        with torch.no_grad():
            there = self.unroll(self.target, u)
            chosen = best(q.detach() if self.a["double_q"] else there, mask)
            v = there.gather(2, chosen[..., None])[..., 0]
            rows = torch.arange(trace)[:, None] + ahead
            y = self.rescale(ret + discount * self.unscale(v.gather(0, rows)))
        taken = q[:trace].gather(2, action[..., None])[..., 0]
        off = y - taken
        loss = (weight * huber(off, self.a["kappa"]) * valid).sum() / valid.sum()
        norm = self.adam.step(loss)
        self.target.follow(self.net, target_part(self.a, u))
        share = c.priority["max_share"]
        size_of = off.detach().abs() * valid
        error = share * size_of.amax(0) + (1 - share) * size_of.sum(0) / valid.sum(0).clamp(min=1)
        mean = ((taken * valid).sum() / valid.sum()).detach()
        self.compare(u, [loss.item(), norm, self.unscale(mean).item(), 0, 0], error)


def check(case):
    kinds = {"sac": Sac if case.about["actions"] else SacOfReals, "r2d2": R2d2}
    learner = kinds.get(case.algorithm["name"], Replay)(case)
    for update in range(1, case.about["updates"] + 1):
        learner.learn(update)


sys.exit(main(check))
