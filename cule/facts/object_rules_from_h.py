"""Objects of games from H on: how their boxes are made, and what these are (objects.py)."""

RULES_FROM_H = """
hero: 012345 8 0 5
  wall 0-156 0-122 8-72 37-118
  player 3-66 0-97 6-8 16-24
  bomb 10-63 65-112 1-6 4-15
ice_hockey: 000005 8 2 5
  enemy 23-119 7-181 12-22 21-32
  ball 31-127 40-186 1-3 1-3
  player at r59-13 r55*-1+168 16x20
  player at r57-13 r53*-1+168 16x20
  enemy at r60-13 r56*-1+168 16x20
  enemy at r58-13 r54*-1+168 16x20
  ball at r52-10 r91*-1+188 2x2
jamesbond: 012345 8 2 5
  enemy_shot 80-84 75-79 1-2 2-6 color=8
  ice 110-167 35-79 5-8 9-12
  player 12-79 77-141 5-11 2-6
  fire_hole 15-136 100-145 10-22 31-65
  hornet 12-158 73-77 5-11 9-19
  helicopter 2-170 35-79 3-9 6-8
  enemy_shot 43-98 88-121 1-2 2-9 color=254
  player_shot 41-125 54-111 1-2 2-7
kangaroo: 012345 8 2 5
  bell 81-105 14-58 3-9 7-15
  fruit 27-131 38-130 4-10 7-15
  monkey 94-164 0-181 3-11 8-21 color=58
  falling_coconut 5-49 0-191 1-3 1-5 color=36
  child 101-141 0-34 5-11 9-21
  player 4-52 110-186 5-11 9-33
  ladder at 132 132 8x35 if r36=0
  ladder at 20 85 8x35 if r36=0
  ladder at 132 37 8x35 if r36=0
  platform at 16 28 128x4 grid 1x4 0 48 if r36=0
  thrown_coconut at r28+++15 r25++*8+1 2x3 grid 3x1 0 0 if r25++=0-254
keystone_kapers: 012345 8 0 5
king_kong: 012345 8 0 5
  player 33-40 92-96 5-11 9-19
  ladder at 12 111 8x18 grid 2x3 128 48
  ladder at 76 87 8x18 grid 1x3 0 48
  ladder at 20 63 8x18 grid 2x1 112 0
  ladder at 76 43 8x18
krull: 012345 8 2 5
  player 39-99 46-138 7 20 color=168
  weapon 57-135 155-159 5-11 4-10
  window 74-78 21-25 5-11 16-36
  spider 64-93 60-108 5-11 5-14
  lyssa 71-155 81-176 7 16
  slayer_shot 42-108 48-165 1-7 6-7
  slayers 26-152 5-175 3-11 9-22 color=180
  player 26-130 66-154 3-11 5-22 color=56
  fire_mare 35-137 143-148 4-11 5-13
kung_fu_master: 012345 8 2 5
  knifes 29-99 126-154 3-9 1-5
  player 72-159 100-134 1-22 18-48 color=0
  henchmen 6-85 124-128 3-11 22-46
  knife_throwers 6-78 124-128 2-11 22-46
mario_bros: 012345 8 0 5
  platform 0-156 35-157 10-130 1-5
  pow_block 60-84 119-163 10-22 4-10
  player 0-163 4-182 7-8 17-23
  fireball 0-164 47-133 4-11 6-17 color=58
  pest 2-160 7-148 4-11 5-17 color=230
montezuma_revenge: 012345 8 2 5
  barrier 8-148 32-76 2-6 24-50
  rope 100-124 74-118 1-2 25-53
  key 1-25 77-121 4-10 9-21
  skull 42-116 144-190 7-8 11-13
  player 20-156 34-188 7-8 14-20
  platform at 0 93 56x2 grid 2x1 104 0 if r3=1
  platform at 68 93 23x2 if r3=1
  platform at 76 136 8x5 if r3=1
  platform at 8 136 28x2 grid 2x1 116 0 if r3=1
  platform at 16 180 128x1 if r3=1
  wall at 0 96 8x40 grid 2x1 152 0 if r3=1
  wall at 0 136 16x45 grid 2x1 144 0 if r3=1
  ladder at 72 93 16x42 if r3=1
  ladder at 16 136 16x45 grid 2x1 112 0 if r3=1
  conveyer_belt at 60 136 15x5 grid 2x1 25 0 if r3=1
ms_pacman: 012345 8 0 5
  ghost 0-158 0-156 5-11 5-14 color=38
  ghost 52-158 0-121 5-11 5-14 color=184
  ghost 58-158 28-154 5-11 5-14 color=88
  ghost 0-158 0-153 5-11 5-14 color=70
  player 18-110 0-150 3-11 5-14 color=42
  pill 0-160 0-170 2-6 1-3
  power_pill 0-160 0-160 2-6 4-10
name_this_game: 012345 8 0 5
  octopus 8-32 7-51 78-162 21-45
  player 39-135 137-141 5-11 8-18
  treasure 60-84 141-185 10-22 3-9
  tentacle 4-152 41-106 4-8 6
  shark 0-162 13-113 8 12
  oxygen_pipe 15-150 1-45 1-2 79-167
  oxygen_boat 10-141 9-17 3-8 5-13 joins
  shot 53-134 31-131 1-2 1-5
pacman: 012345 8 0 5
  power_pill 0-162 17-193 4 10
  ghost 24-100 69-183 8 16
  player 0-101 90-186 7-8 8-14
  ghost at r50++ r55++*2+25 8x16 grid 4x1 0 0
  player at r49 r89*2+1 8x16
  power_pill at 6 39 4x10 if r26&32=32
  power_pill at 6 171 4x10 if r26&16=16
  power_pill at 150 39 4x10 if r26&8=8
  power_pill at 150 171 4x10 if r26&4=4
phoenix: 012345 8 0 5
  player 31-102 171-178 3-10 3-14
  phoenix 0-141 31-157 3-11 3-13
  player_projectile 24-114 0-192 1 5-6 color=218
  enemy_projectile 35-93 66-156 1-2 2-10 color=58
  enemy_projectile 35-93 60-182 1 4-6 color=14
  enemy_projectile 70-89 70-148 1-2 3-9 color=100
  player_projectile at r93-71 r89*-1+201 1x6
  player at r94-70 173 7x10
  boss at 76 r95*-1+198 8x11 if r11=0
  boss_block_green at 56 r95*-1+199 20x15 grid 2x1 28 0 if r11=0
  boss_block_blue at 32 r95*-1+214 4x3 grid 4x1 4 0 bits 27 7 -1 if r11=0
  boss_block_blue at 112 r95*-1+214 4x3 grid 4x1 4 0 bits 27 0 1 if r11=0
  boss_block_blue at 32 r95*-1+216 4x3 grid 4x1 4 0 bits 30 7 -1 if r11=0
  boss_block_blue at 112 r95*-1+216 4x3 grid 4x1 4 0 bits 30 0 1 if r11=0
  boss_block_red at 32 r95*-1+218 4x3 grid 4x1 4 0 bits 33 7 -1 if r11=0
  boss_block_red at 112 r95*-1+218 4x3 grid 4x1 4 0 bits 33 0 1 if r11=0
  boss_block_red at 32 r95*-1+221 4x3 grid 4x1 4 0 bits 36 7 -1 if r11=0
  boss_block_red at 112 r95*-1+221 4x3 grid 4x1 4 0 bits 36 0 1 if r11=0
  boss_block_blue at 48 r95*-1+214 4x3 grid 8x1 4 0 bits 28 0 1 if r11=0
  boss_block_blue at 80 r95*-1+214 4x3 grid 8x1 4 0 bits 29 7 -1 if r11=0
  boss_block_blue at 48 r95*-1+217 4x3 grid 8x1 4 0 bits 31 0 1 if r11=0
  boss_block_blue at 80 r95*-1+217 4x3 grid 8x1 4 0 bits 32 7 -1 if r11=0
  boss_block_red at 48 r95*-1+218 4x3 grid 8x1 4 0 bits 34 0 1 if r11=0
  boss_block_red at 80 r95*-1+218 4x3 grid 8x1 4 0 bits 35 7 -1 if r11=0
  boss_block_red at 48 r95*-1+221 4x3 grid 8x1 4 0 bits 37 0 1 if r11=0
  boss_block_red at 80 r95*-1+221 4x3 grid 8x1 4 0 bits 38 7 -1 if r11=0
  boss_block_red at 48 r95*-1+224 4x3 grid 8x1 4 0 bits 39 0 1 if r11=0
  boss_block_red at 80 r95*-1+224 4x3 grid 8x1 4 0 bits 40 7 -1 if r11=0
  boss_block_red at 48 r95*-1+227 4x3 grid 8x1 4 0 bits 41 0 1 if r11=0
  boss_block_red at 80 r95*-1+227 4x3 grid 8x1 4 0 bits 42 7 -1 if r11=0
  boss_block_red at 48 r95*-1+230 4x3 grid 8x1 4 0 bits 43 0 1 if r11=0
  boss_block_red at 80 r95*-1+230 4x3 grid 8x1 4 0 bits 44 7 -1 if r11=0
  boss_block_red at 64 r95*-1+233 4x3 grid 4x2 4 3 bits 45 4 1 if r11=0
  boss_block_red at 80 r95*-1+233 4x3 grid 4x2 4 3 bits 45 3 -1 if r11=0
pitfall: 012345 8 2 5
  logs 123-127 116-120 3-9 9-19
  stair 66-90 114-158 2-6 27-57
  wall 124-148 126-170 4-10 20-44
  player 6-150 92-106 2-11 10-29
  crocodile 48-104 97-144 5-11 3-13
  scorpion 65-102 147-192 5-11 6-15
  player at r97 r105+72 8x21
  platform at 8 180 152x1
  stair_pit at 76 122 8x6 if r20=0-1
  platform at 8 125 68x8 if r20=0
  platform at 84 125 77x8 if r20=0
  platform at 8 125 40x8 if r20=1-4
  platform at 112 125 48x8 if r20=1-4
  platform at 60 125 16x8 if r20=1
  platform at 84 125 16x8 if r20=1
  pit at 48 122 12x6 grid 2x1 52 0 if r20=1
  tarpit at 48 120 64x10 if r20=2
  tarpit at 48 120 64x10 if r20=5-6 if r36&128=0
  platform at 8 125 40x8 if r20=5-6 if r36&128=0
  platform at 112 125 48x8 if r20=5-6 if r36&128=0
  waterhole at 48 120 64x10 if r20=3-4
  platform at 8 125 152x8 if r20=5-6 if r32&128=128
pong: 012345 8 0 5
  ball 8-169 11-214 1-3 2-7
  enemy 14-18 20-199 2-6 2-22 within=34-194
  player 138-142 20-199 2-6 2-22 within=34-194
pooyan: 012345 8 0 012345
  player 118-142 40-126 5-11 9-19
  bait 114-126 61-65 5-11 2-6 color=86
  bait 118-142 46-90 5-11 2-6 color=14
  enemy 42-111 68-177 7-8 6-7
  arrow 26-142 46-132 5-11 1-2
  balloon 42-110 60-169 6-8 7-8
private_eye: 012345 8 2 5
  player 6-157 29-153 8 25
  car 0-154 121-185 11-27 9-37
  player at r63 r97*-1+150 8x12 if r97=0
  player at r63 r97*-1+150 8x25 if r97=1-255
qbert: 012345 8 0 5
  cube 0-144 12-200 13-27 3-7
  disk 0-152 116-160 5-11 1-3
  player 1-102 0-210 8 15-21 color=52
  coily 50-86 104-183 8 15-21 color=102
riverraid: 012345 8 2 5 163-163/1
  helicopter 45-112 0-24 4-11 1-10 color=176
  helicopter 45-112 0-24 5-11 2-7 color=128
  player 52-99 123-167 5-7 13-14
  helicopter 45-115 0-183 5-8 2-10 color=42
  house 6-141 0-24 10-22 8-22 color=12
  tanker 55-106 0-176 14-16 3-8
  house 6-141 0-183 10-16 2-19 color=0
  player_missile 55-100 0-166 1 6-8
  house 16-137 0-4 10 6-10 color=218
  fuel_depot 51-112 0-24 4-10 1-25 color=12
  fuel_depot 51-112 0-183 7 2-24 color=72
  player_missile at r117-1 r50*-1+162 1x8 if r117=1-255 if r50=0-162
road_runner: 012345 8 2 5
  player 57-157 74-166 8 23-32
  enemy 110-146 97-121 7-8 28-29
seaquest: 012345 8 2 5
  player 40-104 24-120 16 7-11
  shark 0-169 43-166 3-8 6-7 color=200
  collected_diver 56-60 176-180 5-11 5-13
  oxygen_bar 46-54 167-172 4-63 5-6
  diver 0-168 44-116 4-8 6-13 color=134
  player_missile 0-169 35-127 4-8 1
skiing: 012345 8 0 5
  player 7-146 37-46 7-8 15-18
  mogul 38-115 10-197 16 3-6
  flag 40-114 30-176 5 6-14
  tree 15-141 10-181 10-16 2-30 color=198
  tree 31-136 30-161 5-22 1-41 color=212
  tree 18-161 10-181 10-16 3-30 color=214
  tree at r62++-3 r86++*-1+182 16xr54++ grid 8x1 0 0 to 152,179 if r70++=85 if r54++=1-254 if
    r86++=0-178 if r62++=0-154
  tree at 8 r86++*-1+182 r62++*-1+164xr54++ grid 8x1 0 0 to 152,179 if r70++=85 if r54++=1-254 if
    r86++=0-178 if r62++=155-255
space_invaders: 012345 8 0 5
  shield 30-118 135-179 4-11 11-25
  player 22-76 163-207 4-11 6-14
  alien 10-136 9-143 5-11 5-14
  bullet 29-116 21-194 1-2 3-17
star_gunner: 012345 8 0 5
  player_missile 0-160 30-204 8 1
  bomb_thrower 0-148 15-59 4-10 6-14
  player 38-114 34-204 8 4
  bomb 16-148 30-202 4 1
  flying_enemy 18-110 61-102 3-11 6-14
tennis: 002345 8 1 5
  player 22-109 0-84 7-22 14-32
  ball_shadow 32-58 111-161 2 4 color=14
  enemy 10-99 92-187 7-22 14-32
  ball 39-119 16-100 1-3 1-6 color=14
  ball_shadow 44-124 26-177 1-3 1-3 color=2
  ball at r16-2 r54*-1+189 2x2 if r16=3-255
  ball_shadow at r16-2 r55*-1+189 2x2 if r16=3-255
up_n_down: 012345 8 0 5
  truck 4-150 9-198 14-16 8-16
  player 30-83 73-114 16 9-16
  truck at r40++ r56+++16 16x16 grid 4x1 0 0 if r36++=0-7
  player at r40++ r56+++16 16x16 grid 4x1 0 0 if r36++=16
  flag at r40++ r56+++15 7x16 grid 4x1 0 0 if r36++=8-15
venture: 012345 8 0 5
  player 49-83 125-203 1-2 1-3
  hallmonsters 0-157 22-177 3-7 5-11
video_pinball: 012345 8 4 -
  drop_target 35-123 2-176 1-10 7-19
  bumper 28-128 26-134 2-22 5-44 color=118
  spinner 18-138 68-114 3-9 6-14
  flipper 52-100 157-206 8 7-11
  ball 8-163 3-201 2 4
yars_revenge: 012345 8 4 -
  barrier 40-64 0-35 18-38 118-260
  shield_block 116-140 52-108 2-6 10-22
  enemy 148-152 55-121 5-11 10-25
  player 0-73 0-199 5-11 10-22 color=124
  enemy_missile 74-154 66-162 2-6 1-5
  swirl 4-146 56-103 5-11 10-22 color=52
  shield_block at 128 r26+121 4x8 grid 8x16 4 -8 bits 1 0 1 if r53=160-255
  player_bullet at r38-1 r37+4 1x2 if r53=160-255
"""
