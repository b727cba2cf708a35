"""`python -m cule.bench`: how many frames a second cule emulates; on a CPU, ale-py's speed, too.

FPS are emulated frames per second over all envs: a step with frameskip 4 is four frames, whether or
not an observation shows them. A step that only resets an env counts the same, for all systems.

There are three modes:

end-to-end The default. Actions are drawn at random on the device, and every step delivers all
    observations, rewards and ends of episodes there. The CuLE paper calls this "emulation only", as
    no policy runs.
emulation-only The same with RAM as observations: the envs are made with `obs_type="ram"`, so that a
    step delivers RAM, rewards and ends of episodes. The engine may leave pictures out; the time for
    what it still does for them counts.
with-policy An untrained network, the Nature CNN, chooses the actions on the device. The paper calls
    this "inference only".

A case is a game and a number of envs. It begins with steps that are not timed, until the envs are
at different points of their games (systems.spread_out). Then the systems take turns, in short
rounds, and the median round counts. A round is a fixed number of steps, so that nothing waits for
the GPU before its end. CUDA events time it on a GPU, a monotonic clock on a CPU.

A case that fails, for lack of memory or otherwise, gives a row that says why, and the next case
follows. Cases are measured in a process of their own, which is replaced after a failure.
"""
