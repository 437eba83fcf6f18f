"""Modules of DSPy against a server on loopback (its address is in OPENAI_BASE_URL), and what they give."""

from __future__ import annotations

import os

import dspy


def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


def bad(x: int) -> str:
    """Fails."""
    raise ValueError("no such x")


dspy.configure(lm=dspy.LM("openai/m", api_base=os.environ["OPENAI_BASE_URL"], api_key="x", cache=False, num_retries=0))
agent = dspy.ReAct("question -> answer", tools=[find, bad])
thinking = dspy.ChainOfThought("question -> answer")
several = dspy.Predict("question, customer -> answer")


class Shop(dspy.Module):
    def __init__(self):
        super().__init__()
        self.asking = dspy.ReAct("question -> answer", tools=[find, bad])

    def forward(self, question):
        return self.asking(question=question)


shop = Shop()


class Broken(Shop):
    def forward(self, question):
        self.asking(question=question)
        raise RuntimeError("the model is gone")


broken = Broken()


def result(prompt):
    return agent(question=prompt)


def thought(prompt):
    return thinking(question=prompt)


def truth():
    """What DSPy itself reports of the same run."""
    with dspy.context(track_usage=True):
        told = agent(question="hello")
    usage = told.get_lm_usage()["openai/m"]
    return {"trajectory": told.trajectory, "usage": [usage["prompt_tokens"], usage["completion_tokens"]]}


def answer_alone(prompt):
    return agent(question=prompt).answer


class Rewrites(dspy.Module):
    """Gives another Prediction than that of the tools."""

    def __init__(self):
        super().__init__()
        self.asking = dspy.ReAct("question -> answer", tools=[find, bad])

    def forward(self, question):
        return dspy.Prediction(answer=self.asking(question=question).answer)


def rewritten(prompt):
    return Rewrites()(question=prompt)
