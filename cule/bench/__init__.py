"""`python -m cule.bench`: how many frames a second cule emulates; on a CPU, ale-py's speed, too.

FPS are emulated frames per second over all envs: a step with frameskip 4 is four frames, whether or
not an observation shows them. A step that only resets an env counts the same, for all systems.

There are four modes:

end-to-end The default. Actions are drawn at random on the device, and every step delivers all
    observations, rewards and ends of episodes there. The CuLE paper calls this "emulation only", as
    no policy runs.
emulation-only The same with RAM as observations: the envs are made with `obs_type="ram"`, so that a
    step delivers RAM, rewards and ends of episodes. The engine may then skip drawing; the time of
    what it draws all the same is included.
with-policy An untrained network, the Nature CNN, chooses the actions on the device. The paper calls
    this "inference only".
with-training The network also learns: after each 16 steps, once from these. The envs are on the
    CPU, whatever the device.

With `--env-groups K`, in the last two modes, the envs are on the CPU in K groups. While the threads
emulate some, the network acts for the others (batches.py). EnvPool gets batches of the same size;
ale-py steps all envs at once.

A case is a game and a number of envs. It begins with steps that are not timed, until the envs are
at different points of their games (systems.spread_out). Then the systems take turns in short
rounds, and the median round is the result. A round is a fixed number of steps, and nothing waits
for the GPU before the round ends. On a GPU, CUDA events time it; on a CPU, a monotonic clock.

A case that fails, for lack of memory or another reason, gets a row that says why, and the next case
follows. Cases are measured in a process of their own, which is replaced after a failure.
"""
