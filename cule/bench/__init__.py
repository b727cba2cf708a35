"""`python -m cule.bench`: how many frames a second cule emulates, on the CPU beside ale-py in the same run.

FPS are emulated frames per second over all envs: a step of frameskip 4 is four frames, whether or not they are looked
at. A step counts alike whatever it does, also where it only resets an env; both systems are counted so.

There are three modes:

end-to-end
    The default. Actions are drawn at random on the device, and every step delivers all observations, rewards and
    endings there. This is what the CuLE paper calls "emulation only", since no policy is at work.
emulation-only
    The same with RAM as observations: the envs are made with `obs_type="ram"`, so that a step delivers RAM, rewards and
    endings. The engine is free to leave pictures out, and what it does for them all the same counts.
with-policy
    An untrained network, the Nature CNN, chooses the actions on the device; the paper's "inference only".

A case is a game and a number of envs. It begins with steps that are not timed, until the envs of the batch are at
different points of their games (systems.spread_out). Then the systems take turns, in short rounds, and the median round
counts. A round is a number of steps fixed beforehand, so that nothing waits for the GPU before its end; CUDA events
time it there, a monotonic clock on the CPU.

A case that fails, for lack of memory or otherwise, gives a row that says why, and the next one goes on: cases are
measured in a process of their own, which is replaced after a failure.
"""
