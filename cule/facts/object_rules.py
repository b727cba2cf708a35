"""Objects of games from A to G: how their boxes are made, and what these are (objects.py)."""

RULES = """
adventure: 012345 8 0 5
  player 64-148 92-200 2-6 5-11 color=42
  player 132-168 14-170 2-6 5-11 color=56
  player 0-82 14-186 2-6 5-11 color=88
  player at r11-1 r12*-2+238 3x8
  gate at r6 r7*-2+238 1xr16 if r21=9-27
  gate at r8 r9*-2+238 1xr17 if r22=9-27
  red_dragon at r6 r7*-2+238 1xr16 if r21=54
  red_dragon at r8 r9*-2+238 1xr17 if r22=54
  yellow_dragon at r6 r7*-2+238 1xr16 if r21=63
  yellow_dragon at r8 r9*-2+238 1xr17 if r22=63
  green_dragon at r6 r7*-2+238 1xr16 if r21=72
  green_dragon at r8 r9*-2+238 1xr17 if r22=72
  dragon_sword at r6 r7*-2+238 1xr16 if r21=90
  dragon_sword at r8 r9*-2+238 1xr17 if r22=90
  yellow_key at r6 r7*-2+238 8xr16 if r21=99
  yellow_key at r8 r9*-2+238 8xr17 if r22=99
  white_key at r6 r7*-2+238 8xr16 if r21=108
  white_key at r8 r9*-2+238 8xr17 if r22=108
  black_key at r6 r7*-2+238 8xr16 if r21=117
  black_key at r8 r9*-2+238 8xr17 if r22=117
  black_bat at r6 r7*-2+238 1xr16 if r21=126
  black_bat at r8 r9*-2+238 1xr17 if r22=126
  chalice at r6 r7*-2+238 8xr16 if r21=144
  chalice at r8 r9*-2+238 8xr17 if r22=144
  magnet at r6 r7*-2+238 1xr16 if r21=153
  magnet at r8 r9*-2+238 1xr17 if r22=153
alien: 012345 8 0 5
  pulsar 74-80 15-19 3-10 3-7
  player 23-120 31-109 4-8 11-13 color=142
  egg 14-146 0-189 1-2 1-3
  alien 21-134 16-180 4-11 8-18 color=94
  alien 53-146 64-180 4-11 8-18 color=30
  player 35-118 31-109 4-8 13 color=78
  alien 41-90 112-180 4-11 8-18 color=190
amidar: 012345 8 2 5
  player 127-151 41-156 4-10 4-10 color=30
  warrior 3-151 0-182 4-10 4-10 color=216
  shadow at r66+++9 r59+++7 7x7 grid 7x1 0 0 if r73++&32=32 if r51=103
assault: 002345 8 1 5
  mother_ship 0-136 0-41 20-44 10-29
  player 39-131 176-183 2-11 5-11
  enemy 0-153 31-126 9-22 5-11
  player_missile_vertical 40-145 29-197 1-2 1-32 color=14
asterix: 012345 8 2 5
  enemy 0-156 4-160 7 11
  consumable 0-156 5-161 7 10
  reward 45-120 20-160 6 11
  player 19-140 4-160 8-16 11
asteroids: 012345 8 2 5
  player 12-153 0-186 4-8 6-10 color=76
  player_missile 5-160 15-195 1 2
  asteroid 1-159 14-194 3-4 5-12 move=1,1
  asteroid 1-159 14-194 6-8 10-16 move=1,1
  asteroid 1-159 20-194 3-16 7-28
atlantis: 002345 8 1 5
  acropolis_command_post 60-84 90-134 8 8
  sentry 0-164 90-147 5-11 4-11 color=58
  generator 50-155 102-159 1-6 5-11
  domed_palace 26-50 126-170 10-22 5-11
  bridged_bazaar 84-108 137-181 10-22 5-11
  deathray 0-82 70-114 1-3 55-117
  bandit_bomber 0-153 0-105 9 7
  aqua_plane 4-28 149-193 16 7
  gorgon_ship 0-155 0-105 11-15 6-8
  projectile 12-160 12-119 1-2 1-2
bank_heist: 012345 8 0 5
  dynamite 0-158 43-103 4-8 2
  bank 4-148 24-188 5-11 4-10 color=6
  player 0-152 39-107 3-11 3-10 color=36
  bank at r29++ r9+++37 8x7 grid 3x1 0 0 if r9++=1-255 if r24++=253
  police at r29++ r9+++37 8x7 grid 3x1 0 0 if r9++=1-255 if r24++=254
  dynamite at r32-1 r12+37 8x2 if r12=1-255
  player at r28 r8+37 8x7
battle_zone: 012345 8 2 5
  radar 62-86 0-25 14-30 21-45
  blue_tank 71-156 88-94 7-27 6-21
  red_thing 19-66 91-95 7-17 4-10 color=74
  player 0-44 108-174 96-158 25-34
  red_thing 7-56 71-117 3-11 1-7 color=72
  player at 19 140 122x38
  radar_content at r74*-1/9+94 r82*-1+34 7x7 if r82=0-254
  blue_tank at r48+1 r47*-1+97 6x4 if r73=1 if r48=1-255 if r46=6-13
  blue_tank at r48+2 r47*-1+97 12x9 if r73=1 if r48=1-255 if r46=14-21
  blue_tank at r48+1 r47*-1+97 16x12 if r73=1 if r48=1-255 if r46=22-34
  blue_tank at r48+9 r47*-1+97 22x14 if r73=1 if r48=1-255 if r46=35-36
  blue_tank at r48+1 r47*-1+97 16x15 if r73=1 if r48=1-255 if r46=37-40
  blue_tank at r48+13 r47*-1+97 20x17 if r73=1 if r48=1-255 if r46=41-46
  blue_tank at r48+1 r47*-1+97 16x10 if r73=1 if r48=1-255 if r46=0 if r47=0-6
  blue_tank at r48+3 r47*-1+97 16x14 if r73=1 if r48=1-255 if r46=0 if r47=7
  blue_tank at r48+1 r47*-1+97 16x15 if r73=1 if r48=1-255 if r46=0 if r47=8
  blue_tank at r48+13 r47*-1+97 20x17 if r73=1 if r48=1-255 if r46=0 if r47=9
  blue_tank at r54+1 r53*-1+97 6x4 if r81=1 if r54=1-255 if r52=6-13
  blue_tank at r54+2 r53*-1+97 12x9 if r81=1 if r54=1-255 if r52=14-21
  blue_tank at r54+1 r53*-1+97 16x12 if r81=1 if r54=1-255 if r52=22-34
  blue_tank at r54+9 r53*-1+97 22x14 if r81=1 if r54=1-255 if r52=35-36
  blue_tank at r54+1 r53*-1+97 16x15 if r81=1 if r54=1-255 if r52=37-40
  blue_tank at r54+13 r53*-1+97 20x17 if r81=1 if r54=1-255 if r52=41-46
beam_rider: 002345 8 1 5
  player 14-140 142-186 9-21 10-22
  saucer 46-81 46-63 3-4 2 color=8
berzerk: 012345 8 2 5
  enemy 0-144 0-176 8 16-18
  player 0-39 42-107 4-8 20-24
  player_missile 2-42 0-189 1-2 3-9 color=60
  enemy_missile 2-78 22-106 1-4 2-6 color=54
  enemy at r65+++6 r56++*2+4 8x16 grid 8x1 0 0 if r65++=1-255 if r56++=0-126
  player_missile at r22+2 r23*2+3 1x6 if r15=1-255 if r21=1
  player_missile at r22+2 r23*2-1 1x6 if r15=1-255 if r21=2
  player_missile at r22+4 r23*2+2 4x2 if r15=1-255 if r21=4-5
  player_missile at r22+4 r23*2 4x2 if r15=1-255 if r21=6
  player_missile at r22 r23*2 4x2 if r15=1-255 if r21=7-15
bowling: 012345 1 0 5
  pin 109-147 97-177 1-3 2-6
  player 6-44 117-161 5-11 20-44
  ball 1-159 87-185 4 6
boxing: 012345 8 0 5
  player 22-86 19-138 12-34 45-47 color=12 size=14x46
  enemy 20-123 18-146 12-34 46-47 color=0 size=14x46 right
breakout: 012345 8 0 5
  block 0-100 35-109 10-195 3-9
  ball 0-163 72-216 2 2-4
  player 0-156 167-211 10-22 2-6
carnival: 002345 8 1 5
  wheel 68-76 13-17 14-38 7-17
  player 16-158 164-208 3-9 8-18
  duck 0-168 46-111 4-8 15 color=24
  owl 0-171 25-69 1-11 8-21 color=72
  flying_duck 15-79 88-185 10-22 9-21
  rabbit 0-169 25-111 3-8 15 color=10
  extra_bullets 0-171 52-96 5-8 9
centipede: 012345 8 0 5
  spider 6-147 85-198 7-11 3-9 color=102
  spider 20-130 85-198 7-11 3-9 color=214
  centipede_segment 0-160 0-200 4-40 5-6 size=3x6 cells=4
  mushroom 12-148 0-182 4 3
  player 34-142 139-174 2-6 5-13
  projectile 30-153 0-185 1 9
  centipede_segment 5-152 0-154 2-4 5-6
  centipede_segment at r100+++17 r91++&31*-9+176 3x6 grid 9x1 0 0 if r91++&31=0-19
chopper_command: 012345 1 0 5 175-187/2
  mini_truck 56-104 185 1 2
  mini_enemy 56-104 179-183 2 2 color=46
  mini_truck 56-106 185 2-16 2 size=1x2 cells=2
  player 16-137 62-137 10-22 5-13
  truck 6-160 159-165 2-8 5-7
  enemy_helicopter 0-169 45-155 1-11 5-13 color=14
  enemy_plane 10-160 68-88 3-8 4-6
  mini_player 62-90 157-205 1-3 1-3 color=32
  shot 6-158 67-142 4-72 1
crazy_climber: 002345 8 1 5
  player 29-55 136-185 7-19 11-32
  window at 44 r58+47 8x8 grid 2x12 64 13 if r46++&247=0
  window at 56 r58+47 8x8 grid 2x12 40 13 if r46++=0-8
  window at 68 r58+47 8x8 grid 2x12 16 13 if r46++=0-4
  window at 68 r58+47 8x8 grid 2x12 16 13 if r46++=12-16
demon_attack: 002345 17 3 5
  player 24-147 152-196 4-10 7-17
  enemy 8-156 21-156 14-16 6-7
  player_missile 26-150 0-197 1 5-10
  enemy_missile at h20+12 179 1x4 grid 8x10 1 -8 bits 37 7 -1
  enemy_part at h13+++12 r69++*-1+175 30x7 grid 3x1 0 0 if r29++=1-3
  enemy_part at h17+++12 r69++*-1+175 30x7 grid 3x1 0 0 if r29++=1-3
  player at h16+12 174 7x12
  player_missile at h22+14 r21*-1+178 1x8
donkey_kong: 012345 8 4 -
  donkey_kong 22-46 0-37 10-22 12-26
  girlfriend 51-75 0-40 5-11 10-22
  barrel 20-132 30-207 5-11 4-11
  hammer 28-52 46-90 1-3 4-10
  player 25-120 149-199 5-11 9-23
  ladder at 108 176 4x17
  ladder at 48 148 4x17 grid 2x1 32 0
  ladder at 88 120 4x17 grid 2x1 20 0
  ladder at 48 92 4x17 grid 2x1 20 0
  ladder at 108 64 4x17
  ladder at 32 40 4x17 grid 2x1 44 0
double_dunk: 012345 8 0 5
  backboard 56-80 6-50 15-33 10-22
  basket 74-78 40-44 5-11 5-13
  opponent_big 74-78 111-115 5-11 9-19 color=82
  player_big 92-120 47-91 8 16-18 color=180
  opponent_big 43-144 28-126 7-8 15-25 color=226
  ball 45-114 7-190 4 2-6
  player_small 73-81 78-85 4-11 7-19 color=180
  player_big 45-114 44-106 7-8 14-25 color=232
  opponent_small 44-100 41-157 7-8 17-22
  player_small at r39+11 r35*-1+163 8x19
  player_big at r37+11 r33*-1+159 8x23
  opponent_small at r40+11 r36*-1+163 8x19
  opponent_big at r38+11 r34*-1+159 8x23
  ball at r47+12 r46*-1+178 4x4
enduro: 012345 8 0 5
  player 67-80 141-146 10-22 7-15
fishing_derby: 012345 8 0 5
  fish 4-160 82-190 5-11 3-8 size=8x10 move=0,-2
  fish 4-160 82-190 5-11 9-14
  shark 6-117 58-102 22-48 8-18
  player_one_hook at r23-r34-2 r65*23/10+78 3x3 if r30=16
  player_one_hook at r23+r34+1 r65*23/10+78 3x3 if r30=0-15
  player_one_hook at r23+r34+1 r65*23/10+78 3x3 if r30=17-255
  player_two_hook at r24-r35+2 r66*23/10+78 3x3 if r31=16
  player_two_hook at r24+r35+5 r66*23/10+78 3x3 if r31=0-15
  player_two_hook at r24+r35+5 r66*23/10+78 3x3 if r31=17-255
freeway: 012345 8 2 5
  chicken 40-120 0-200 5-8 5-8 color=30
  car 0-168 5-180 3-8 10
frogger: 012345 8 2 5
  frog 27-131 113-193 4-11 4-10 color=214
  car 0-150 107-163 8-16 7
frostbite: 012345 8 0 5
  house 100-124 29-73 5-44 2-6
  bird 0-41 60-156 6-8 6-7
  player 42-89 28-172 4-8 2-19
  floating_block 6-138 94-176 10-22 4-10 color=12
  floating_block 6-138 90-180 10-22 4-10 color=152
galaxian: 012345 8 2 5
  enemy_ship 10-150 14-160 5-8 7-10
  player 29-125 148-192 8 14
  player_missile 49-115 15-163 1 3
gopher: 012345 8 0 5
  carrot 48-104 129-173 5-11 17-37
  floor 0-12 154-198 112-160 19
  hole 138-142 159-163 5-11 9-30
  gopher 0-147 160-186 7-14 10-23
  player 37-150 74-118 4-10 32-68
  floor at 0 183 150x12
  hole at 140 176 8x7 if r17&24=24 if r11&24=0-23
  hole at 124 176 8x7 if r16&1=1 if r17&1=1 if r10&1=0
  hole at 108 176 8x7 if r16&24=24 if r10&24=0-23
  hole at 44 176 8x7 if r13&1=1 if r14&1=1 if r7&1=0
  hole at 28 176 8x7 if r13&24=24 if r7&24=0-23
  hole at 12 176 8x7 if r12&128=128 if r13&128=128 if r6&128=0
  hole at 140 169 8x14 if r11&24=24 if r5&24=0-23
  hole at 124 169 8x14 if r10&1=1 if r11&1=1 if r4&1=0
  hole at 108 169 8x14 if r10&24=24 if r4&24=0-23
  hole at 44 169 8x14 if r7&1=1 if r8&1=1 if r1&1=0
  hole at 28 169 8x14 if r7&24=24 if r1&24=0-23
  hole at 12 169 8x14 if r6&128=128 if r7&128=128 if r0&128=0
  hole at 140 161 8x22 if r5&24=24
  hole at 124 161 8x22 if r4&1=1 if r5&1=1
  hole at 108 161 8x22 if r4&24=24
  hole at 44 161 8x22 if r1&1=1 if r2&1=1
  hole at 28 161 8x22 if r1&24=24
  hole at 12 161 8x22 if r0&128=128 if r1&128=128
"""
